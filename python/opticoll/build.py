"""The build of opticoll: a digest of what computes, so that results of two builds are told apart.

>>> len(build())
64
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

WITHOUT_EFFECT = ("plot", "papers", "reference", "report", "study")
"""Folders of the package that no row of a command depends on."""


@cache
def build(*, papers: bool = False) -> str:
    """A digest of the package as installed, compiled core included; of papers if asked for."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if path.suffix in {".py", ".so", ".pyd"} and (
            papers or place.parts[0] not in WITHOUT_EFFECT
        ):
            digest.update(str(place).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
