"""Plan files: plain text, or compressed with zstd where the name ends in `.zst`.

The text form itself is read and written by the compiled core and described in the documentation.

>>> import pathlib, tempfile, opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.plan.zst"
>>> opticoll.write_plan(plan, path)
>>> opticoll.read_plan(path).to_text() == plan.to_text()
True
"""

from __future__ import annotations

import os

from opticoll._core import Plan, PlanFileError
from opticoll.formats.atomic import replacing
from opticoll.formats.content import read_text


def read(path: str | os.PathLike[str]) -> Plan:
    """The plan in a file; compression is recognised by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded as UTF-8.
    PlanFileError
        It is malformed; the message names file, line and column.
    """
    text = read_text(path, "plan file")
    try:
        return Plan.from_text(text)
    except PlanFileError as error:
        raise PlanFileError(f"{path}: {error}") from error


def write(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan under a temporary name, then rename it to `path`.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    content = plan.to_text().encode("utf-8")
    if str(path).endswith(".zst"):
        import zstandard

        content = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(content)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
