"""The notebooks of the site run without errors, and print what they show."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
notebooks = __import__("notebooks")


@pytest.mark.parametrize(
    "path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_prints_what_it_shows(path: Path) -> None:
    shown = notebooks.texts(nbformat.read(path, as_version=4))
    assert shown == notebooks.texts(notebooks.executed(path)), "run `python docs/notebooks.py`"
    assert sum(map(bool, shown)) >= 4
