"""The addresses below /api/v1/. No slash at the end; names may contain slashes, so verbs come before what they are verbs of."""

from django.urls import URLPattern, path, re_path

from quotas.api.base import NoSuchPath
from quotas.api.catalog import DETAIL, EDITED_DETAIL, EDITED_LIST, LIST
from quotas.api.scopes import Memberships, Quotas, Scopes

from . import brake, docs, measuring, modes, previews, records, registered, rows, sweeps, target, verbs


def edited(name: str, view: type, key: str) -> list[URLPattern]:
    return [
        path(name, view.as_view(EDITED_LIST), name=f"api-{name}"),
        path(f"{name}/<{key}>", view.as_view(EDITED_DETAIL), name=f"api-{name}-detail"),
    ]


def read(name: str, view: type, key: str) -> list[URLPattern]:
    return [
        path(name, view.as_view(LIST), name=f"api-{name}"),
        path(f"{name}/<{key}>", view.as_view(DETAIL), name=f"api-{name}-detail"),
    ]


urlpatterns = [
    path("plan", verbs.Plan.as_view(), name="api-plan"),
    path("snapshot", verbs.Snapshot.as_view(), name="api-snapshot"),
    path("load", verbs.Load.as_view(), name="api-load"),
    path("endpoints", verbs.Endpoints.as_view(), name="api-endpoints"),
    path("endpoints/registered", registered.Registered.as_view(registered.LIST), name="api-registered"),
    path("endpoints/registered/preview", registered.Registered.as_view(registered.PREVIEW), name="api-registered-preview"),
    path("endpoints/registered/<path:name>", registered.Registered.as_view(registered.DETAIL), name="api-registered-detail"),
    path("models/<path:name>/wake", verbs.Wake.as_view(), name="api-model-wake"),
    path("models/<path:name>/retire", verbs.Retire.as_view(), name="api-model-retire"),
    path("models/<path:name>/pause", verbs.Pause.as_view(), name="api-model-pause"),
    path("models/<path:name>/end_rest", modes.EndRest.as_view(), name="api-model-end-rest"),
    path("models/<path:name>/replacing", modes.Replacing.as_view(), name="api-model-replacing"),
    path("models/<path:name>/preview", previews.ModelPreview.as_view(), name="api-model-preview"),
    path("slos/<path:name>/preview", previews.SloPreview.as_view(), name="api-slo-preview"),
    path("models/<path:name>/mode", modes.Mode.as_view(), name="api-model-mode"),
    path("models/<path:name>/target", target.Target.as_view(), name="api-model-target"),
    path("nodes/<path:name>/cordon", verbs.Cordon.as_view(), name="api-node-cordon"),
    path("pools/<path:name>/take-over", verbs.TakeOver.as_view(), name="api-pool-take-over"),
    path("pools/<path:name>/brake", brake.PoolBrake.as_view(), name="api-pool-brake"),
    path("measurements/import", measuring.MeasurementImport.as_view(), name="api-measurement-import"),
    path("measurements/<int:id>/export", measuring.Export.as_view(), name="api-measurement-export"),
    path("measurements/<int:id>/accept", measuring.Accept.as_view(), name="api-measurement-accept"),
    path("bench_runs/<int:id>/stop", sweeps.BenchRunStop.as_view(), name="api-bench-run-stop"),
    path("bench_runs", sweeps.BenchRuns.as_view({"get": "list", "post": "create"}), name="api-bench_runs"),
    path("bench_runs/<int:id>", sweeps.BenchRuns.as_view(DETAIL), name="api-bench_runs-detail"),
    *edited("scopes", Scopes, "path:name"),
    *edited("quotas", Quotas, "int:id"),
    *edited("memberships", Memberships, "int:id"),
    *edited("pools", rows.Pools, "path:name"),
    *edited("nodes", rows.Nodes, "path:name"),
    *edited("models", rows.Models, "path:name"),
    *edited("profiles", rows.Profiles, "int:id"),
    path("profiles/<int:id>/preview", rows.Profiles.as_view({"post": "preview"}), name="api-profile-preview"),
    *edited("measurements", rows.Measurements, "int:id"),
    *edited("slos", rows.Slos, "path:name"),
    *edited("prices", rows.Prices, "int:id"),
    *read("replicas", records.Replicas, "path:name"),
    *read("decisions", records.Decisions, "int:id"),
    *read("actions", records.Actions, "int:id"),
    *read("passes", records.Passes, "int:id"),
    path("samples", records.Samples.as_view(LIST), name="api-samples"),
    path("schema/", docs.Schema.as_view(), name="api-schema"),
    path("docs/", docs.swagger, name="api-docs"),
    re_path(r"", NoSuchPath.as_view(), name="api-no-such-path"),
]
