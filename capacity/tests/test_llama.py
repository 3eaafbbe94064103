"""The small real engine: its command line, its quick reading, and the example that is made of that."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from capacity import example
from capacity.bench.asked import Asked
from capacity.bench.sweep import sweep
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.types import Bound, Judgement, Measured, Setting, Slo, Stage, Sweep
from capacity.example import llama
from capacity.gateway.load_plan import parse_load_plan
from capacity.llama import command, packages, reading
from capacity.llama.reading import MODEL, Unread, engine
from capacity.models import LanguageModel, Measurement, Profile
from capacity.node.templates import BUILT_IN, parse_templates, rendered
from quotas.models import Pool, User

needs_packages = pytest.mark.skipif(not packages.are_installed(), reason=packages.HOW)
TARGET = Slo(bounds=(Bound(latency="ttft", percentile=95, ms=1000), Bound(latency="tpot", percentile=95, ms=100)))

MEASURED = Measured(max_concurrency=4, tokens_per_second=120.0, kind="located")


def a_stage(level: int, *, ttft_ms: float = 100, tpot_ms: float = 50, errors: int = 0) -> Stage:
    return Stage(
        where=f"level {level}",
        asked=level,
        requests=3 * level,
        errors=errors,
        seconds=3.0,
        tokens_per_second=30.0 * level,
        ttft_ms={"p95": ttft_ms},
        tpot_ms={"p95": tpot_ms},
    )


def judged(*stages: Stage, slo: Slo = TARGET) -> Judgement:
    return judge(Sweep(setting=Setting(tool="llmgw"), stages=stages), slo)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--port"),
        (["--port", "0", "--model", "m"], "whole number from 1 to 65535"),
        (["--port", "9", "--model", "m", "--slots", "0"], "whole number from 1 to 64"),
        (["--port", "9", "--model", "m", "--threads", "two"], "not 'two'"),
        (["--port", "9", "--model", "m", "--thread", "1"], "Unrecognized arguments"),
    ],
)
def test_a_bad_option_is_one_sentence(capsys, arguments, sentence):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_what_is_not_installed_is_said_with_the_command_that_installs_it(capsys, monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        command.main(["--port", "9", "--model", "m"])
    assert "make setup-llama" in capsys.readouterr().err


def test_the_template_is_one_thread_and_four_slots_without_being_told():
    template = parse_templates(BUILT_IN.read_text(), "t.toml")["llama"]
    found = rendered(template, model="m", values={}, host="127.0.0.1", port=9, devices="")
    text = " ".join(found.arguments)
    assert "-m capacity.llama --host 127.0.0.1 --port 9 --model m --threads 1 --slots 4 --context 1024" in text


# --- the example ------------------------------------------------------------------------------------------------------


@pytest.fixture
def state(settings, tmp_path, monkeypatch):
    settings.VAR = tmp_path
    monkeypatch.setattr(packages, "are_installed", lambda: True)
    stages = [a_stage(1), a_stage(2), a_stage(4), a_stage(8, ttft_ms=4000)]
    monkeypatch.setattr(reading, "read", lambda slo, **request: judged(*stages, slo=slo))
    return tmp_path


@pytest.mark.django_db
def test_the_example_is_what_was_read_on_this_machine(state):
    example.seed(which=example.LLAMA)
    measurement = Measurement.objects.get()
    assert (measurement.max_concurrency, measurement.tokens_per_second, measurement.status) == (4, 120, "current")
    assert measurement.evidence["kind"] == "located"
    assert all("weak" in stage["flags"] and stage["tpot_ms"]["p95"] == 50 for stage in measurement.evidence["stages"])
    assert [stage["concurrency"] for stage in measurement.evidence["stages"]] == [1, 2, 4, 8]
    model = LanguageModel.objects.get()
    assert (model.min_replicas, model.max_replicas, model.mode) == (1, 2, "auto")
    assert Profile.objects.get().template == "llama"
    assert (state / "example-llama.json").exists()
    assert (state / "example-llama" / "token").exists()


def test_its_load_goes_past_what_one_replica_serves_and_far_below_it():
    plan = parse_load_plan(llama.load_plan(MEASURED))
    rates = [plan.per_second(llama.MODEL, second) for second in range(int(plan.cycle_seconds))]
    served = MEASURED.tokens_per_second / llama.OUTPUT_TOKENS
    assert max(rates) > 1.2 * served
    assert min(rates) < 0.35 * served, "half of 70 %"
    assert sum(rate < 0.7 * served for rate in rates) > 60, "for longer than the down window"


@pytest.mark.django_db
def test_both_examples_stand_beside_each_other_and_each_goes_alone(state):
    example.seed()
    example.seed(which=example.LLAMA)
    call_command("seed_demo", llama=True, remove=True)
    assert set(Pool.objects.values_list("name", flat=True)) == {"example"}
    assert not (state / "example-llama.json").exists()
    assert (state / "example.json").exists()
    assert not User.objects.filter(username="llama-gateway").exists()


@pytest.mark.django_db
def test_the_first_start_reads_the_machine_once_and_says_so(state, monkeypatch, capsys):
    monkeypatch.setattr("llmgw_site.management.commands.prepare.collect_static", lambda: None)
    call_command("prepare", demo=False, llama=True)
    assert "Reading what one llama.cpp replica serves" in capsys.readouterr().out
    assert set(Pool.objects.values_list("name", flat=True)) == {"default", "llama"}
    monkeypatch.setattr(reading, "read", lambda *_, **__: pytest.fail("it was read again"))
    call_command("prepare", demo=False, llama=True)
    assert "Reading" not in capsys.readouterr().out


@pytest.mark.django_db
def test_a_machine_that_is_too_slow_is_told_so_and_nothing_is_written(state, monkeypatch):
    monkeypatch.setattr(reading, "read", lambda slo, **request: judged(a_stage(1, tpot_ms=900), slo=slo))
    with pytest.raises(CommandError, match="too slow or too busy"):
        call_command("seed_demo", llama=True)
    assert not Pool.objects.exists()
    assert not list(state.iterdir())


@pytest.mark.django_db
def test_an_engine_that_does_not_answer_is_told_in_a_sentence(state, monkeypatch):
    def refuse(slo, **request):
        raise Unread("llama.cpp could not be read on this machine: it ended at once.")

    monkeypatch.setattr(reading, "read", refuse)
    with pytest.raises(ValidationError, match="it ended at once"):
        example.seed(which=example.LLAMA)


@pytest.mark.django_db
def test_without_the_packages_the_example_says_how_to_install_them(state, monkeypatch):
    monkeypatch.setattr(packages, "are_installed", lambda: False)
    with pytest.raises(CommandError, match="make setup-llama"):
        call_command("seed_demo", llama=True)


@needs_packages
def test_a_real_engine_is_swept():
    loose = Slo(bounds=(Bound(latency="ttft", percentile=95, ms=60_000),))
    with engine() as url:
        asked = Asked(endpoint=url, model=MODEL, slo=loose, levels=(2,), seconds=0.5, input_tokens=50, output_tokens=8)
        found = sweep(asked, progress=lambda progress: None, should_stop=lambda: False)
    (stage,) = found.stages
    assert stage.requests >= 1 and stage.errors == 0
    assert (found.setting.engine, found.setting.output_tokens) == ("llama.cpp", 8)
    assert found.setting.engine_version
    assert abs(found.setting.input_tokens - 50) <= 10


def test_the_load_plan_is_json_that_names_the_model_alone():
    assert set(json.loads(llama.load_plan(MEASURED))["models"]) == {llama.MODEL}
