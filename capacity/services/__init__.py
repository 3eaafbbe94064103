"""The only writers of the catalogue: forms, API and commands call these, with who did it and why.

Refusals are `ValidationError` with a dict field → sentences (`__all__` where no field is to blame).
Warnings come back as sentences.
"""

from quotas.services import Conflict, check, delete, exclusive, quota_delete, quota_save, save, version_of

from . import measurement_rules as measurement_rules
from . import outdating as outdating
from . import price_rules as price_rules
from . import rules as rules
from . import template_rules as template_rules
from .brake import brake_pull, brake_release
from .edits import model_mode, model_wake, node_cordon, node_resources, node_resources_preview, pool_create
from .endpoints import endpoint_add, endpoint_preview, endpoint_remove
from .measurements import Origin, acceptance, in_force, measurement_accept, measurement_of, measurement_store, replacing, said_of
from .modes import end_rest
from .retiring import model_replacing, model_retire
from .sweeps import bench_prepare, bench_start, bench_stop
from .taking_over import TakeOver, take_over, take_over_preview

__all__ = [
    "Conflict",
    "Origin",
    "TakeOver",
    "acceptance",
    "bench_prepare",
    "bench_start",
    "bench_stop",
    "brake_pull",
    "brake_release",
    "check",
    "delete",
    "end_rest",
    "endpoint_add",
    "endpoint_preview",
    "endpoint_remove",
    "exclusive",
    "in_force",
    "measurement_accept",
    "measurement_of",
    "measurement_store",
    "model_mode",
    "model_replacing",
    "model_retire",
    "model_wake",
    "node_cordon",
    "node_resources",
    "node_resources_preview",
    "pool_create",
    "quota_delete",
    "quota_save",
    "replacing",
    "said_of",
    "save",
    "take_over",
    "take_over_preview",
    "version_of",
]
