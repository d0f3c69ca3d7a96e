"""Executes the notebooks of `docs/notebooks`.

`python docs/notebooks.py` executes all and keeps their outputs, which the site shows.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"
SECONDS = 300
"""Maximum time of a cell."""


def executed(path: Path) -> nbformat.NotebookNode:
    """Runs a notebook and returns it with its outputs.

    Raises CellExecutionError if a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=SECONDS, record_timing=False).execute()
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python", "pygments_lexer": "python3"},
    }
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns the text that each code cell prints and returns, without figures."""
    return [
        "".join(
            one.text if one.output_type == "stream" else one.data.get("text/plain", "")
            for one in cell.outputs
            if "image/svg+xml" not in one.get("data", {})
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)
