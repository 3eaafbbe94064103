"""The pages. A name may hold slashes: pages end with one, data does not."""

from __future__ import annotations

from django.urls import path

from .views import (
    brake_page,
    decisions,
    engines_page,
    example,
    measurements,
    mode_page,
    model_list,
    model_page,
    node_page,
    nodes,
    now,
    replacing_page,
    replica_page,
    retire_page,
    sweeps,
    take_over,
    target_page,
    tenants,
    tokens,
)

urlpatterns = [
    path("", now.now, name="now"),
    path("example/remove/", example.example_remove, name="example_remove"),
    path("models/", model_list.model_list, name="models"),
    path("models/<path:name>/chart.json", model_page.chart_json, name="model_chart"),
    path("models/<path:name>/end_rest/", mode_page.end_rest, name="model_end_rest"),
    path("models/<path:name>/retire/", retire_page.retire_page, name="model_retire"),
    path("models/<path:name>/replacing/", replacing_page.replacing_page, name="model_replacing"),
    path("models/<path:name>/target/", target_page.target_page, name="model_target"),
    path("models/<path:name>/mode/", mode_page.mode_page, name="model_mode"),
    path("models/<path:name>/", model_page.model_page, name="model"),
    path("replicas/<path:name>/", replica_page.replica_page, name="replica"),
    path("pools/<path:name>/brake/", brake_page.brake_page, name="pool_brake"),
    path("engines/", engines_page.engines, name="engines"),
    path("engines/add/", engines_page.engine_add, name="engine_add"),
    path("engines/<path:name>/forget/", engines_page.engine_forget, name="engine_forget"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/<path:name>/cordon/", node_page.cordon, name="node_cordon"),
    path("nodes/<path:name>/", node_page.node_page, name="node"),
    path("pools/<path:name>/take-over/", take_over.take_over, name="take_over"),
    path("tenants/", tenants.tenants, name="tenants"),
    path("profiles/<int:pk>/measure/", sweeps.measure, name="measure"),
    path("measurements/runs/<int:pk>/stop/", sweeps.sweep_stop, name="sweep_stop"),
    path("measurements/runs/<int:pk>/", sweeps.sweep, name="sweep"),
    path("measurements/", measurements.measurements, name="measurements"),
    path("decisions/", decisions.decisions, name="decisions"),
    path("decisions/<int:pk>/", decisions.decision, name="decision"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/revoke/", tokens.token_revoke, name="token_revoke"),
]
