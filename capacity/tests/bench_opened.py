"""Small result files of other tools (tests/bench_files), as the formats are given them."""

import csv
import json
from pathlib import Path

import yaml

from capacity.bench.formats import (
    aiperf,
    evalscope,
    genai_bench,
    inference_perf,
    inferencemax,
    llm_d,
    llm_d_planner,
    llmperf,
    sglang,
    tgi_bench,
)
from capacity.bench.formats.contract import Opened

FOLDER = Path(__file__).parent / "bench_files"
FORMATS = (inferencemax, sglang, aiperf, inference_perf, llmperf, llm_d, genai_bench, tgi_bench, evalscope, llm_d_planner)
NAMES = sorted(path.name for path in FOLDER.iterdir())


def opened(name):
    path = FOLDER / name
    text = path.read_text()
    if path.suffix == ".csv":
        return Opened(where=name, shape="csv", documents=list(csv.reader(text.splitlines())))
    if path.suffix == ".yaml":
        return Opened(where=name, shape="yaml", documents=list(yaml.safe_load_all(text)))
    return _opened_json(name, path.suffix, text)


def _opened_json(name, suffix, text):
    parts = text.splitlines() if suffix == ".jsonl" else [text]
    documents = [json.loads(part, parse_constant=lambda word: None) for part in parts]
    if isinstance(documents[0], list):
        return Opened(where=name, shape="list", documents=documents[0])
    return Opened(where=name, shape="lines" if len(documents) > 1 else "object", documents=documents)


def with_document(name, document):
    """The file with its first document replaced."""
    found = opened(name)
    return Opened(where=name, shape=found.shape, documents=[document, *found.documents[1:]])


def format_of(found):
    """The one format that recognises it."""
    (one,) = [each for each in FORMATS if each.recognises(found)]
    return one


def read(name):
    found = opened(name)
    return format_of(found).read(found)


def only(contents):
    """Setting and stage of a file with one stage."""
    (one,) = contents.stages
    return one
