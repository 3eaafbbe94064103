"""Names that are markup, addresses or very long: escaped everywhere, and each page is reached by its link."""

from __future__ import annotations

import html
import json
import re
import shlex
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.briefings import evacuate, mode_facts, sweep_facts, target
from capacity.domain.measurement.document import evidence_of
from capacity.models import BenchRun, Brake, LanguageModel, Measurement, Replica
from capacity.tests.factories import make_measurement, make_node, make_pool, make_scope
from capacity.tests.fleet import deps_without_redis
from capacity.tests.pages import HOSTILE, make_action, make_fleet, make_person
from capacity.tests.sweeps import SLO, judged
from capacity.views import take_over
from quotas.models import CapacityQuota, ScopeEdge

NAMES = [
    HOSTILE,
    "😀" * 60,
    "a/b",
    "what?#%20&x=1",
    "javascript:alert(1)",
    "{start}{{ model }}",
    "models/chart.json",
    "'quoted' `it`",
]

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_client_of_site(client, monkeypatch):
    for module in (mode_facts, evacuate, take_over, sweep_facts, target):
        monkeypatch.setattr(module, "deps", deps_without_redis)
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return client


def fleet_named(name):
    scope, parent = make_scope(name), make_scope(f"parent {name}")
    ScopeEdge.objects.create(child=scope, parent=parent)
    pool = make_pool(name)
    fleet = make_fleet(name, pool=pool, scope=scope)
    CapacityQuota.objects.create(scope=scope, pool=pool, target=f"model:{name}", limit=3)
    add = fleet.decision
    add.outcome, add.reason, add.count = "add", "over_capacity", 1
    add.save()
    make_action(add, fleet.replicas[0], message=name, profile_name=name)
    return fleet


def operated(fleet):
    """The addresses of operators' acts on what bears the name: a host, a registered engine, a brake that withholds, a rest."""
    name, now = fleet.model.name, timezone.now()
    node = make_node(name, pool=fleet.pool, resources={"sim": 1}, labels={"zone": HOSTILE}, foreign_devices={HOSTILE: "sim"})
    engine = fleet.replicas[1]
    Replica.objects.filter(pk=engine.pk).update(is_registered=True, nodes=[name], name=f"{name} e")
    row = {"op": "start", "model": name, "replica": "", "profile": name, "nodes": [name], "reason": "below_min", "rule": "manual"}
    withheld = [{**row, "also": "", "why": name, "since": now.isoformat()}]
    Brake.objects.filter(pool=fleet.pool).update(is_on=True, reason=name, actor=name, changed_at=now, withheld=withheld)
    release = {"until": (now + timedelta(hours=1)).isoformat(), "stops": {name: 1}, "starts": {name: 2}, "unready": [name]}
    Brake.objects.filter(pool=fleet.pool).update(withheld_since=now, released=release)
    LanguageModel.objects.filter(pk=fleet.model.pk).update(removals_rest_until=now + timedelta(hours=1))
    return [
        *(reverse(page, args=[fleet.pool.name]) for page in ("pool_brake", "take_over")),
        *(reverse(page, args=[node.name]) for page in ("node", "node_cordon")),
        *(reverse(page, args=[name]) for page in ("model", "model_retire", "model_mode")),
        *(reverse(page, args=[f"{name} e"]) for page in ("replica", "engine_forget")),
        *(reverse(page) for page in ("now", "engines", "nodes", "models")),
        f"{reverse('engine_add')}?{urlencode({'model': name})}",
    ]


def urls_of(fleet):
    lists = [reverse(name) for name in ("now", "models", "nodes", "tenants", "measurements", "decisions")]
    own = [reverse(page, args=[fleet.model.name]) for page in ("model", "model_mode")]
    own.append(reverse("replica", args=[fleet.replicas[0].name]))
    return [
        *lists,
        *own,
        *evidence_urls(fleet),
        reverse("decision", args=[fleet.decision.pk]),
        reverse("decisions") + "?model=%3Cimg+src%3Dx",
    ]


def evidence_urls(fleet):
    """The addresses of what was measured and is to be, where the sweep bears the name of the model everywhere."""
    name = fleet.model.name
    evidence = evidence_of(judged(model=name, engine=name, hints={"label": name}), slo=SLO, files=[{"name": name, "sha256": "0"}])
    row = make_measurement(fleet.profile, status="stale", stale_why=name, note=name, kind="located", evidence=evidence)
    run = BenchRun.objects.create(profile=fleet.profile, replica=fleet.replicas[0], actor=name, reason=name, message=name)
    return [
        *(reverse(page) for page in ("measurements_import", "measurements_queue")),
        reverse("measurement", args=[row.pk]),
        f"{reverse('measurements_compare')}?id={row.pk}&id={Measurement.objects.exclude(pk=row.pk).first().pk}",
        reverse("sweep", args=[run.pk]),
        reverse("measure", args=[fleet.profile.pk]),
        f"{reverse('model_target', args=[name])}?tokens_per_second=10",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_stands_and_holds_no_markup_of_a_name(admin_client_of_site, name):
    fleet = fleet_named(name)
    for url in urls_of(fleet):
        page = admin_client_of_site.get(url)
        assert page.status_code == 200, url
        assert "<img" not in page.content.decode()


@pytest.mark.parametrize("name", NAMES)
def test_the_links_of_a_list_lead_to_the_page_of_that_name(admin_client_of_site, name):
    fleet = fleet_named(name)
    listing = admin_client_of_site.get(reverse("models")).content.decode()
    link = reverse("model", args=[name])
    assert f'href="{link.replace("&", "&amp;").replace(chr(39), "&#x27;")}"' in listing
    assert admin_client_of_site.get(link).context["model"] == fleet.model
    assert admin_client_of_site.get(reverse("model_chart", args=[name])).json()["figure"]["data"]


@pytest.mark.parametrize("name", [*NAMES, "$(reboot) `reboot` \"'", "\u202eimage\u202d", "x" * 200, "-rf"])
def test_every_page_of_an_operators_act_stands_and_its_command_runs_nothing_of_a_name(admin_client_of_site, name):
    # a replica's name is longer than the model's
    fleet = fleet_named(name[:190])
    for url in operated(fleet):
        page = admin_client_of_site.get(url)
        assert page.status_code == 200, url
        text = page.content.decode()
        assert "<img" not in text and "&lt;b&gt;" not in text
        for command in re.findall(r"<code>(manage\.py .*?)</code>", text, re.DOTALL):
            words = shlex.split(html.unescape(command).replace("…", ""), comments=False)
            assert "$(reboot)" not in words and ("reboot" not in command or fleet.model.name in " ".join(words))


def test_a_hostile_name_in_the_chart_is_text(admin_client_of_site):
    fleet = fleet_named(HOSTILE)
    answer = admin_client_of_site.get(reverse("model_chart", args=[HOSTILE])).json()
    assert "<" not in json.dumps([trace["name"] for trace in answer["figure"]["data"]])
    assert fleet.replicas[0].name.startswith(HOSTILE)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x"])
def test_a_formula_in_a_csv_is_text_and_numbers_stay_numbers(admin_client_of_site, name):
    make_fleet(name)
    response = admin_client_of_site.get(reverse("model", args=[name]), {"format": "csv"})
    head, first, *_ = b"".join(response.streaming_content).decode().splitlines()
    assert head == "time_utc,model,replica,in_flight,measured_concurrency,load_percent,note"
    assert re.fullmatch(rf"[0-9T:-]+Z,'{re.escape(name)},'{re.escape(name)}/r0,6.0,10.0,60.0,", first)


def test_no_page_holds_a_script_or_a_handler_of_its_own(admin_client_of_site):
    fleet = fleet_named("plain")
    for url in [*urls_of(fleet), reverse("tokens"), reverse("password_change")]:
        page = admin_client_of_site.get(url).content.decode()
        scripts = re.findall(r"<script[^>]*>", page)
        assert all("src=" in tag or 'type="application/json"' in tag for tag in scripts)
        assert not re.search(r"<[^>]+\son[a-z]+=", page)
        assert not re.search(r"<[^>]+\sstyle=", page)
