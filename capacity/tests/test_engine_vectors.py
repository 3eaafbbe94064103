"""Engine × version × form: the same numbers in every spelling, sums over ranks, and unknown wherever one of them is no number."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from capacity.ports import Histogram
from capacity.sources.reading import EngineReading, read_engine
from capacity.tests.engine_answers import ANSWERS, Answer

NINE = Histogram(bounds=(0.1, 0.5), counts=(2, 7), count=9)
EVERY = pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
WITH_LOAD = {name: answer for name, answer in ANSWERS.items() if answer.running is not None}
LOADED = pytest.mark.parametrize("answer", WITH_LOAD.values(), ids=WITH_LOAD)


def each_line(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(f"{change(line)}\n" for line in text.splitlines())


def scientific(line: str) -> str:
    """3.9024848896e+010, as one C library writes it."""
    name, value = line.rsplit(" ", 1)
    if "nan" in value:
        return line
    return f"{name} " + re.sub(r"e([+-])(\d\d)$", r"e\g<1>0\2", f"{float(value):.12e}")


def helped(line: str) -> str:
    name = re.split(r"[{ ]", line)[0]
    return f"# HELP {name} Number of {name} 3\n# TYPE {name} gauge\n{line}"


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "underscores": lambda text: text.replace(":", "_") + "# EOF\n",
    "the end of OpenMetrics": lambda text: text + "# EOF",
    "no end of line": lambda text: text.rstrip("\n"),
    "ends of line of Windows": lambda text: text.replace("\n", "\r\n"),
    "times": each_line(lambda line: f"{line} 1796005542151"),
    "exemplars": each_line(lambda line: line + ' # {trace_id="a} 5"} 0.4 1796005542.1'),
    "three digits of an exponent": each_line(scientific),
    "help and types": each_line(helped),
    "tabs and blanks": each_line(lambda line: re.sub(r" (\S+)$", "\t \\1  ", line)),
    "all of it twice": lambda text: text + text,
    "from the last line to the first": lambda text: "\n".join(reversed(text.splitlines())),
    "among others": lambda text: f'up 1\nprocess_open_fds 17\n{text}python_info{{version="3"}} 1\nhttp_requests_total 5\n',
    "among nonsense": lambda text: f"\x00\xff\n{{}} 3\nvllm:num_requests{{\n=\n\n \n{text}sglang:\n# \n",
}


def seen(reading: EngineReading) -> tuple[object, ...]:
    kv = None if reading.kv_usage_mean is None else (reading.kv_usage_mean, reading.kv_usage_max)
    return reading.engine, reading.running, reading.waiting, reading.output_tokens_total, kv


@EVERY
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_engine_reads_the_same_in_every_form(answer: Answer, form):
    reading = read_engine(form(answer.text))
    assert seen(reading) == (answer.engine, answer.running, answer.waiting, answer.tokens, answer.kv)
    known = answer.running is not None and answer.waiting is not None
    assert reading.in_flight == ((answer.running or 0) + (answer.waiting or 0) if known else None)
    assert reading.latencies == dict.fromkeys(answer.latencies, NINE)


def with_label(text: str, label: str) -> str:
    """The label in every line of it, as another rank or process of one replica has."""
    return each_line(lambda line: re.sub(r"^([^{ ]+)(?:\{([^}]*)\})?", rf"\1{{{label},\2}}", line))(text)


@LOADED
@pytest.mark.parametrize("label", ["engine", "dp_rank", "WorkerId", "pid", "model_name", "pod"])
def test_ranks_processes_and_models_of_one_endpoint_are_added_up(answer: Answer, label):
    carries = re.compile(rf'\b{label}="[^"]*"')
    text = answer.text if carries.search(answer.text) else with_label(answer.text, f'{label}="0"')
    reading = read_engine(text + carries.sub(f'{label}="7"', text))

    def added_up(number: int | None, *names: str) -> int | None:
        """Twice as much where its lines differ by the label; a line that comes twice counts once."""
        twice = any(carries.search(line) for line in text.splitlines() if re.split(r"[{ ]", line)[0] in names)
        return number if number is None or not twice else 2 * number

    def bare(names: list[str]) -> list[str]:
        return [name.split("{")[0] for name in names]

    tokens = [name for name in bare(list(answer.lines)) if re.search("tokens_(predicted_)?total|generated_tokens_sum", name)]
    assert (reading.running, reading.waiting, reading.output_tokens_total) == (
        added_up(answer.running, *bare(parts(answer, "running"))),
        added_up(answer.waiting, *bare(parts(answer, "waiting"))),
        added_up(answer.tokens, *tokens),
    )
    assert seen(reading)[4] == answer.kv, "a share of the cache is never added up"


@LOADED
@pytest.mark.parametrize("label", ["tp_rank", "pp_rank", "moe_ep_rank"])
def test_ranks_that_repeat_the_requests_of_their_group_count_once(answer: Answer, label):
    bare = re.sub(rf'\b{label}="[^"]*",?', "", answer.text).replace(",}", "}")
    copies = "".join(with_label(bare, f'{label}="{rank}"') for rank in range(8))
    assert seen(read_engine(copies)) == seen(read_engine(answer.text))
    assert read_engine(copies).latencies == read_engine(answer.text).latencies


NONSENSE = ["NaN", "-nan", "+Inf", "-Inf", "-1", "2.5", "1e300", "9" * 5000, "1_000", "eight", '"8"', "0x8", "1e", "٣", "{}"]


WAITING = r"waiting(?!_by)|queue|deferred|active"


def parts(answer: Answer, of: str) -> list[str]:
    """The metrics that an engine's number of running or waiting requests is made of."""
    words = {"running": r"running|processing|batch_current|scheduled|frontend_inflight", "waiting": WAITING}[of]
    return [name for name in answer.lines if re.search(words, name) and "infight" not in name]


@LOADED
@pytest.mark.parametrize("value", NONSENSE, ids=range(len(NONSENSE)))
@pytest.mark.parametrize("of", ["running", "waiting"])
def test_a_number_that_is_none_makes_the_load_unknown_and_leaves_the_rest(answer: Answer, of, value):
    names = parts(answer, of)
    assert names, "the table says which lines are meant"
    for name in names:
        reading = read_engine(answer.text.replace(f"{name} {answer.lines[name]}\n", f"{name} {value}\n"))
        assert reading.in_flight is None, name
        assert reading.output_tokens_total == answer.tokens


@LOADED
def test_a_number_that_is_absent_is_unknown_and_never_0(answer: Answer):
    for of in ("running", "waiting"):
        without = [
            line for line in answer.text.splitlines() if not any(line.startswith(f"{name} ") for name in parts(answer, of))
        ]
        assert read_engine("\n".join(without)).in_flight is None


@EVERY
def test_latencies_that_are_no_numbers_are_absent_and_leave_the_rest(answer: Answer):
    for latency, name in answer.latencies.items():
        for bad in ("NaN", "-1", "7.5", "3e300"):
            reading = read_engine(answer.text.replace(f'{name}_bucket{{le="0.5"}} 7', f'{name}_bucket{{le="0.5"}} {bad}'))
            assert set(reading.latencies) == set(answer.latencies) - {latency}
            assert reading.in_flight == read_engine(answer.text).in_flight


BUCKETS = 'vllm:num_requests_running 1\nvllm:e2e_request_latency_seconds_bucket{le="0.5"} 7\n'
LAST = 'vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 9\n'


@pytest.mark.parametrize(
    "text",
    [
        BUCKETS,  # cut off: no count of all
        BUCKETS + LAST.replace(" 9", " 6"),  # falls
        BUCKETS + LAST + BUCKETS.replace("{", '{engine="1",') + LAST.replace('le="', 'engine="1",le="1'),  # other buckets
        BUCKETS.replace('"0.5"', '"half"') + LAST,
        BUCKETS.replace('le="0.5"', "") + LAST,
    ],
)
def test_a_histogram_that_contradicts_itself_is_unknown(text):
    assert read_engine(text).latencies == {}


def test_two_models_of_one_endpoint_may_lack_each_other_s_series():
    text = """\
vllm:num_requests_running{model_name="one"} 3
vllm:num_requests_waiting{model_name="one"} 2
vllm:num_requests_waiting{model_name="other"} 3
"""
    assert seen(read_engine(text))[:3] == ("vllm", 3, 5)


def test_only_the_first_engine_s_names_count_where_two_answer():
    both = ANSWERS["vLLM 0.33"].text + ANSWERS["Dynamo's front end"].text
    assert seen(read_engine(both)) == seen(read_engine(ANSWERS["vLLM 0.33"].text))
