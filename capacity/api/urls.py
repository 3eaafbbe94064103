"""The addresses below /api/v1/. No slash at the end; names may contain slashes, so verbs come before what they are verbs of."""

from django.urls import path, re_path

from quotas.api.base import NoSuchPath

from . import verbs

urlpatterns = [
    path("plan", verbs.Plan.as_view(), name="api-plan"),
    path("snapshot", verbs.Snapshot.as_view(), name="api-snapshot"),
    path("load", verbs.Load.as_view(), name="api-load"),
    path("endpoints", verbs.Endpoints.as_view(), name="api-endpoints"),
    path("models/<path:name>/wake", verbs.Wake.as_view(), name="api-model-wake"),
    path("models/<path:name>/pause", verbs.Pause.as_view(), name="api-model-pause"),
    path("nodes/<path:name>/cordon", verbs.Cordon.as_view(), name="api-node-cordon"),
    re_path(r"", NoSuchPath.as_view(), name="api-no-such-path"),
]
