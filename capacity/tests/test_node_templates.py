"""Runtime templates: only what the administrator declared is run, and never through a shell."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

from capacity.node.parameters import Refused
from capacity.node.templates import BUILT_IN, InvalidTemplates, load_templates, parse_templates, rendered, template_source
from capacity.simulator import options

VLLM = """
[templates.vllm]
command = ["/opt/vllm/bin/vllm", "serve", "{model_path}", "--port", "{port}", "--host", "{host}",
  "--served-model-name", "{model}", "--tensor-parallel-size={tp}", "--override", '{{"a": 1}}']
health = "/health"
environment = { HF_HUB_OFFLINE = "1", DEVICES = "{devices}" }
[templates.vllm.parameters]
tp = { type = "integer", min = 1, max = 8, default = 1 }
fraction = { type = "number", min = 0, max = 1, default = 0.9 }
dtype = { type = "choice", choices = ["auto", "fp8"], default = "auto" }
adapter = { type = "name", default = "none" }
model_path = { type = "path", root = "ROOT" }
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "models" / "llama").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "models" / "out").symlink_to(tmp_path / "secret")
    return tmp_path / "models"


def run(models: Path, model: str = "llama", **values: str) -> tuple[str, ...]:
    template = parse_templates(VLLM.replace("ROOT", str(models)), "t.toml")["vllm"]
    command = rendered(template, model=model, values={"model_path": "llama"} | values, host="127.0.0.1", port=9, devices="GPU-1")
    assert command.environment == {"HF_HUB_OFFLINE": "1", "DEVICES": "GPU-1"}
    return command.arguments


def test_a_template_becomes_an_argument_list_with_checked_values(models: Path) -> None:
    assert run(models, tp="4") == (
        "/opt/vllm/bin/vllm", "serve", str(models / "llama"), "--port", "9", "--host", "127.0.0.1",
        "--served-model-name", "llama", "--tensor-parallel-size=4", "--override", '{"a": 1}',
    )  # fmt: skip


def test_shell_signs_in_a_models_name_stay_one_argument(models: Path) -> None:
    assert 'a; rm -rf $HOME `id` "><img>' in run(models, model='a; rm -rf $HOME `id` "><img>')


@pytest.mark.parametrize("model", ["", "-x", "--port", "a\nb", "a\0b", "x" * 201])
def test_a_models_name_that_could_be_an_option_is_refused(models: Path, model: str) -> None:
    with pytest.raises(Refused, match="cannot be an argument"):
        run(models, model=model)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"tp": "9"}, "outside 1 to 8"),
        ({"tp": "0"}, "outside 1 to 8"),
        ({"tp": "1.5"}, "not a whole number"),
        ({"tp": "٣"}, "not a whole number"),
        ({"tp": "1\n"}, "not a whole number"),
        ({"tp": ""}, "not a whole number"),
        ({"fraction": "nan"}, "not a plain decimal"),
        ({"fraction": "1e400"}, "not a plain decimal"),
        ({"fraction": "1.1"}, "outside 0 to 1"),
        ({"dtype": "fp4"}, "not one of auto, fp8"),
        ({"adapter": "--flag"}, "must begin with a letter"),
        ({"adapter": "a b"}, "must begin with a letter"),
        ({"adapter": "a" * 201}, "must begin with a letter"),
        ({"model_path": "../secret"}, "does not lie below"),
        ({"model_path": "/etc/passwd"}, "does not lie below"),
        ({"model_path": "out"}, "does not lie below"),
        ({"model_path": "missing"}, "does not exist"),
        ({"model_path": ""}, "not a path"),
        ({"model_path": "a\0b"}, "not a path"),
        ({"trust_remote_code": "1"}, "has no parameter 'trust_remote_code'"),
    ],
)
def test_a_value_that_is_not_declared_or_not_allowed_is_refused(models: Path, values: dict[str, str], fault: str) -> None:
    with pytest.raises(Refused, match=fault):
        run(models, **values)


def test_a_parameter_without_default_must_be_given(models: Path) -> None:
    template = parse_templates(VLLM.replace("ROOT", str(models)), "t.toml")["vllm"]
    with pytest.raises(Refused, match="needs the parameter model_path"):
        rendered(template, model="m", values={}, host="h", port=1, devices="")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "one table"),
        ("[templates.a", "t.toml is not usable"),
        ("x = 1\n[templates]", "one table"),
        ("[templates.a]\ncommand = []", "needs a command"),
        ('[templates.a]\ncommand = "rm -rf"', "needs a command"),
        ('[templates.a]\ncommand = ["sh"]', "neither an absolute path"),
        ('[templates.a]\ncommand = ["{model}"]', "neither an absolute path"),
        ('[templates.a]\ncommand = ["/bin/x", "{nothing}"]', "{nothing} is no placeholder"),
        ('[templates.a]\ncommand = ["/bin/x", "{port.__class__}"]', "is no placeholder"),
        ('[templates.a]\ncommand = ["/bin/x", "{port!r}"]', "is no placeholder"),
        ('[templates.a]\ncommand = ["/bin/x", "{"]', "not usable"),
        ('[templates.a]\ncommand = ["/bin/x"]\nshell = true', "unknown key 'shell'"),
        ('[templates.a]\ncommand = ["/bin/x"]\nhealth = "http://elsewhere/"', "health must be"),
        ('[templates.a]\ncommand = ["/bin/x"]\nenvironment = {"A=B" = "1"}', "no name of a variable"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.port = {type="integer"}', "may not be called 'port'"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.a = {type="text"}', "type 'text'"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.a = {type="integer", mni=1}', "unknown key 'mni'"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.a = {type="integer", min="1"}', "min that is not a number"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.a = {type="integer", max=3, default="4"}', "outside"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.a = {type="path", root="models"}', "needs a root"),
        ('[templates.a]\ncommand = ["/bin/x"]\nparameters.a = {type="choice"}', "needs choices"),
        ('[templates."../a"]\ncommand = ["/bin/x"]', "template name"),
        ("[templates]\na = 1", "not a table"),
    ],
)
def test_a_broken_file_is_refused_with_a_sentence_that_names_it(text: str, fault: str) -> None:
    with pytest.raises(InvalidTemplates, match=r"t\.toml") as caught:
        parse_templates(text, "t.toml")
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    path = folder / "templates.toml"
    path.write_text('[templates.mine]\ncommand = ["/bin/true"]')
    path.chmod(0o644)
    return path


def test_an_administrators_file_adds_to_the_built_in_ones(file: Path) -> None:
    assert set(template_source(file)()) == {"simulator", "llama", "mine"}


def test_an_edit_of_the_file_counts_from_the_next_start_on(file: Path) -> None:
    read = template_source(file)
    read()
    file.write_text('[templates.other]\ncommand = ["/bin/true"]')
    assert set(read()) == {"simulator", "llama", "other"}


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(InvalidTemplates, match="file may be written by others"):
        load_templates(file)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_file_in_a_folder_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    with pytest.raises(InvalidTemplates, match="folder of the file may be written by others"):
        load_templates(file)


def test_a_link_is_judged_by_the_folder_that_it_leads_to(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    file.parent.chmod(0o777)
    with pytest.raises(InvalidTemplates, match="folder"):
        load_templates(link)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused(file: Path) -> None:
    os.chown(file, 12345, 12345)
    with pytest.raises(InvalidTemplates, match="belongs to user 12345"):
        load_templates(file)


def test_a_missing_file_and_one_that_is_no_text_are_each_one_sentence(file: Path) -> None:
    with pytest.raises(InvalidTemplates, match="cannot be read: No such file"):
        load_templates(file.with_name("other.toml"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidTemplates, match="not UTF-8"):
        load_templates(file)


def test_the_built_in_simulator_is_started_with_options_that_it_knows() -> None:
    template = parse_templates(BUILT_IN.read_text(), BUILT_IN.name)["simulator"]
    command = rendered(template, model="chat", values={"capacity": "12"}, host="127.0.0.1", port=4001, devices="")
    assert command.arguments[:3] == (sys.executable, "-m", "capacity.simulator")
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    parsed = options.options_of(parser.parse_args(command.arguments[3:]))
    assert (parsed.model, parsed.port, parsed.capacity, parsed.host) == ("chat", 4001, 12, "127.0.0.1")
