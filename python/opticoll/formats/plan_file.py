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
from pathlib import Path

from opticoll._core import Plan, PlanFileError
from opticoll.errors import FileError
from opticoll.formats.atomic import replacing

__all__ = ["SUFFIXES", "read", "write"]

SUFFIXES = (".plan", ".txt", ".zst")
"""Endings by which a name is taken for a plan file before it is looked for."""

MOST_BYTES = 4 * 2**30
"""Decompressed bytes beyond which a file is taken for damaged or hostile."""

_MAGIC = b"\x28\xb5\x2f\xfd"

_PORTION = 4096
"""Compressed bytes that are decompressed at once; zstd makes at most some 100 MB of them."""


def read(path: str | os.PathLike[str]) -> Plan:
    """The plan in a file; compression is recognised by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded as UTF-8.
    PlanFileError
        It is malformed; the message names file, line and column.
    """
    content = _read_bytes(Path(path))
    if content.startswith(_MAGIC):
        content = _decompress(path, content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"`{path}` is no plan file: byte {error.start} is no UTF-8 text") from error
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


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise FileError(f"there is no file `{path}`") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error


def _decompress(path: str | os.PathLike[str], content: bytes) -> bytes:
    import zstandard

    text = bytearray()
    try:
        reader = zstandard.ZstdDecompressor().decompressobj()
        for start in range(0, len(content), _PORTION):
            if reader.eof:
                break
            text += reader.decompress(content[start : start + _PORTION])
            if len(text) > MOST_BYTES:
                raise FileError(f"`{path}` is too large: it holds more than {MOST_BYTES} bytes")
    except zstandard.ZstdError as error:
        raise FileError(f"`{path}` is no intact zstd file: {error}") from error
    if not reader.eof:
        raise FileError(f"`{path}` is cut short: its compressed data ends early")
    if reader.unused_data or start + _PORTION < len(content):
        raise FileError(f"`{path}` is no intact zstd file: bytes follow the end of its data")
    return bytes(text)
