"""What runs, what it was measured to serve, and what was decided about it."""

from .bench import BenchRun, Price
from .catalog import LanguageModel, Node, Profile, Slo
from .fleet import Backoff, Brake, Lease, Replica
from .measurement import Measurement
from .pool_settings import PoolSettings
from .record import Action, Decision, Pass, Rollup, Sample

__all__ = [
    "Action",
    "Backoff",
    "BenchRun",
    "Brake",
    "Decision",
    "LanguageModel",
    "Lease",
    "Measurement",
    "Node",
    "Pass",
    "PoolSettings",
    "Price",
    "Profile",
    "Replica",
    "Rollup",
    "Sample",
    "Slo",
]
