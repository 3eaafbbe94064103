"""Result files stored by command and API: previewed, stored whole or not at all, exported and read back as they were."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from capacity.models import Measurement, Slo
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_measurement, make_model, make_profile, make_scope
from capacity.tests.result_files import vllm_lines

pytestmark = pytest.mark.django_db
IMPORT = "/api/v1/measurements/import"
SLO = "ttft p95 500"


@pytest.fixture
def profile() -> Any:
    return make_profile(make_model("llama-8b"), "h100")


@pytest.fixture
def operator() -> Any:
    return person("oscar", is_operator=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs.json"
    path.write_bytes(vllm_lines())
    return path


def upload(client: Any, *contents: bytes, **fields: Any) -> Any:
    files = [SimpleUploadedFile(f"run-{number}.json", content) for number, content in enumerate(contents or (vllm_lines(),))]
    return client.post(IMPORT, {"file": files, "slo": SLO, **fields}, format="multipart")


def command(*args: Any, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        call_command("bench_import", *[str(arg) for arg in args], stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


STORE = ["--model", "llama-8b", "--profile", "h100", "--slo", SLO]


# --- the command --------------------------------------------------------------------------------------------------
def test_the_command_stores_the_sweep_for_a_profile(profile: Any, file: Path) -> None:
    out, _ = command(file, *STORE, "--reason", "measured at night", "--json")
    stored = Measurement.objects.get()
    assert json.loads(out)["stored"] == {"id": stored.pk, "status": "current"}
    assert (stored.profile, stored.max_concurrency, stored.tokens_per_second, stored.kind) == (profile, 2, 190, "located")
    assert stored.evidence["files"][0]["name"] == file.name


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--model", "llama-8b"], "Name both"),
        (STORE, "Say why"),
        ([*STORE, "--reason", "x", "--profile", "none"], "There is no profile “none”"),
        ([*STORE, "--reason", "x", "--sweep", "2"], "there is no sweep 2"),
        ([*STORE, "--reason", "x", "--concurrency", "3"], "leave the concurrency out"),
    ],
)
def test_a_call_that_cannot_be_done_stores_nothing(profile: Any, file: Path, args: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        command(file, *args)
    assert not Measurement.objects.exists()


def test_a_preview_stores_nothing(profile: Any, file: Path) -> None:
    assert "2 in flight" in command(file, *STORE, "--preview")[0]
    assert not Measurement.objects.exists()


# --- the API ------------------------------------------------------------------------------------------------------
def test_the_api_previews_unless_it_is_told_to_store(operator: Any, profile: Any) -> None:
    told = upload(operator, model="llama-8b", profile="h100").json()
    assert (told["preview"], told["format"], Measurement.objects.count()) == (True, "llmgw.import/1", 0)
    assert told["sweeps"][0]["measurement"] == {"max_concurrency": 2, "tokens_per_second": 190.0, "kind": "located"}
    assert told["stored"] == {"id": None, "status": "current", "stale_why": ""}


def test_several_files_of_one_sweep_are_stored_as_one(operator: Any, profile: Any) -> None:
    one, rest = vllm_lines((1, 100.0, 50.0)), vllm_lines((2, 190.0, 80.0), (4, 300.0, 900.0))
    told = upload(operator, one, rest, model="llama-8b", profile="h100", preview="false", reason="night").json()
    stored = Measurement.objects.get()
    assert (told["stored"]["id"], stored.max_concurrency, len(stored.evidence["files"])) == (stored.pk, 2, 2)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"preview": "false", "model": "llama-8b", "profile": "h100"}, "reason"),
        ({"preview": "false", "reason": "x"}, "profile"),
        ({"model": "llama-8b", "profile": "none"}, "profile"),
        ({"slo": "soon"}, "slo"),
        ({"replicas": "0"}, "replicas"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named_at_its_field_and_nothing_is_stored(
    operator: Any, profile: Any, fields: dict[str, str], where: str
) -> None:
    answer = upload(operator, **fields)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [where])
    assert not Measurement.objects.exists()


def test_files_of_nothing_are_refused_each_with_why_and_leave_nothing_behind(operator: Any) -> None:
    before = set(Path(gettempdir()).glob("llmgw-import-*"))
    answer = upload(operator, b"", b'{"half": ')
    assert answer.status_code == 400
    assert len(answer.json()["error"]["fields"]["file"]) == 2
    assert set(Path(gettempdir()).glob("llmgw-import-*")) <= before


def test_only_operators_import_and_accept(profile: Any) -> None:
    scope = make_scope("team")
    profile.model.scope = scope
    profile.model.save()
    viewer, stale = member("vera", scope), make_measurement(profile, status="stale")
    assert upload(viewer).status_code == 403
    assert viewer.post(f"/api/v1/measurements/{stale.pk}/accept", {"reason": "x"}, format="json").status_code == 403
    assert viewer.get(f"/api/v1/measurements/{stale.pk}/export").status_code == 200


def test_strangers_to_the_scope_find_no_measurement() -> None:
    stale = make_measurement(status="stale")
    outsider = member("oleg", make_scope("other"))
    assert outsider.get(f"/api/v1/measurements/{stale.pk}/export").status_code == 404
    assert outsider.post(f"/api/v1/measurements/{stale.pk}/accept", {"reason": "x"}, format="json").status_code == 404


# --- export and back ----------------------------------------------------------------------------------------------
@pytest.fixture
def exported(operator: Any, profile: Any) -> bytes:
    Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500)
    upload(operator, model="llama-8b", profile="h100", preview="false", reason="night", replicas="2")
    return operator.get(f"/api/v1/measurements/{Measurement.objects.get().pk}/export").content


def test_an_export_comes_back_without_change(operator: Any, exported: bytes) -> None:
    make_profile(make_model("llama-8b-b"), "other")
    fields = {"slo": "", "model": "llama-8b-b", "profile": "other", "preview": "false", "reason": "moved here"}
    answer = upload(operator, exported, **fields)
    assert answer.status_code == 200, answer.json()
    first, second = Measurement.objects.order_by("pk")
    for name in ("max_concurrency", "tokens_per_second", "kind", "slo_id", "digest"):
        assert getattr(first, name) == getattr(second, name), name
    assert first.evidence["stages"] == second.evidence["stages"]
    assert second.measured_at == first.measured_at.replace(microsecond=0)


def test_an_export_from_a_day_to_come_is_of_now(operator: Any, exported: bytes) -> None:
    make_profile(make_model("llama-8b-b"), "other")
    later = {**json.loads(exported), "measured_at": "9000-01-01T00:00:00Z"}
    fields = {"slo": "", "model": "llama-8b-b", "profile": "other", "preview": "false", "reason": "moved here"}
    upload(operator, json.dumps(later).encode(), **fields)
    assert Measurement.objects.latest("pk").measured_at.year < 9000


def test_an_export_of_the_same_profile_is_known(operator: Any, exported: bytes) -> None:
    fields = {"slo": "", "model": "llama-8b", "profile": "h100", "preview": "false", "reason": "again"}
    told = upload(operator, exported, **fields).json()
    assert "already" in told["warnings"][0]
    assert Measurement.objects.count() == 1


def test_an_export_that_was_typed_in_is_refused_with_what_to_do(operator: Any) -> None:
    content = operator.get(f"/api/v1/measurements/{make_measurement().pk}/export").content
    assert "typed in" in upload(operator, content).json()["error"]["fields"]["file"][0]


def test_a_stale_one_is_accepted_by_api_and_command(operator: Any, profile: Any) -> None:
    stages = {"stages": [{"concurrency": 10}]}
    for act in ("api", "command"):
        stale = make_measurement(profile, status="stale", evidence=stages)
        if act == "api":
            answer = operator.post(f"/api/v1/measurements/{stale.pk}/accept", {"reason": "same speed"}, format="json")
            assert answer.json()["status"] == "current"
        else:
            call_command("measurement_accept", stale.pk, reason="same speed", stdout=io.StringIO())
        stale.refresh_from_db()
        assert (stale.status, stale.history.first().history_change_reason) == ("current", "same speed")


def test_what_is_missing_of_an_import_is_named(operator: Any, profile: Any, file: Path) -> None:
    def fields(answer: Any) -> Any:
        return answer.json()["error"]["fields"]

    assert fields(upload(operator, model="llama-8b")) == {"profile": ["A profile is named by both: its model and its own name."]}
    assert fields(upload(operator, profile="h100")).keys() == {"model"}
    missing = operator.post(IMPORT, {"model": "llama-8b"}, format="multipart")
    assert fields(missing) == {"file": ["Choose at least one result file."]}
    with pytest.raises(CommandError, match="There is no profile “nope”") as refused:
        command(file, "--model", "llama-8b", "--profile", "nope", "--slo", SLO, "--reason", "x")
    assert refused.value.returncode == 1


def test_several_sweeps_are_numbered_as_they_are_chosen(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    paths[0].write_bytes(vllm_lines())
    paths[1].write_bytes(vllm_lines().replace(b'"model_id": "', b'"model_id": "other-'))
    out, _ = command(*paths, "--slo", SLO)
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("Sweep ")] == ["Sweep 1", "Sweep 2"]
