"""The rows of one pool that a pass works on."""

from .load import domain_settings, load, patience
from .types import BackoffRow, DecisionRow, ModelRow, NodeRow, Problem, ProfileRow, ReplicaRow, Rows

__all__ = [
    "BackoffRow",
    "DecisionRow",
    "ModelRow",
    "NodeRow",
    "Problem",
    "ProfileRow",
    "ReplicaRow",
    "Rows",
    "domain_settings",
    "load",
    "patience",
]
