"""Digest of opticoll's code, which tells results of different builds apart.

>>> len(build())
64
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

WITHOUT_EFFECT = ("plot", "reference", "report", "study")
"""Folders of the package that do not affect the rows of commands."""


@cache
def build(*further: Path) -> str:
    """Returns a digest of the package with its compiled core, and of `further` folders."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parents[1], *further):
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(folder)
            if path.suffix in {".py", ".so", ".pyd"} and place.parts[0] not in WITHOUT_EFFECT:
                digest.update(str(place).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
