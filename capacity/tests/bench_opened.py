"""Small result files of other tools (tests/bench_files), as the formats are given them."""

from pathlib import Path

from capacity.bench.formats import opening
from capacity.bench.formats.contract import Opened
from capacity.bench.formats.registry import FORMATS

FOLDER = Path(__file__).parent / "bench_files"
NAMES = sorted(path.name for path in FOLDER.iterdir())


def opened(name):
    return opening.opened(FOLDER / name, name)


def with_document(name, document):
    """The file with its first document replaced."""
    found = opened(name)
    return Opened(where=name, shape=found.shape, documents=[document, *found.documents[1:]])


def format_of(found):
    """The one format of all that recognises it."""
    (one,) = [each for each in FORMATS if each.recognises(found)]
    return one


def read(name):
    found = opened(name)
    return format_of(found).read(found)


def only(contents):
    """Setting and stage of a file with one stage."""
    (one,) = contents.stages
    return one
