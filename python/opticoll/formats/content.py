"""The bytes of a file, decompressed where it is compressed with zstd.

>>> import pathlib, tempfile, zstandard
>>> path = pathlib.Path(tempfile.mkdtemp()) / "some.zst"
>>> _ = path.write_bytes(zstandard.ZstdCompressor().compress(b"some bytes"))
>>> read_content(path)
b'some bytes'
"""

from __future__ import annotations

import os
from pathlib import Path

from opticoll.errors import FileError

MOST_BYTES = 4 * 2**30
"""Decompressed bytes beyond which a file is taken for damaged or hostile."""

_MAGIC = b"\x28\xb5\x2f\xfd"

_PORTION = 4096
"""Compressed bytes that are decompressed at once; zstd makes at most some 100 MB of them."""


def read_content(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; compression is recognised by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read or decompressed.
    """
    return decompressed(_read_bytes(path), path)


def read_text(path: str | os.PathLike[str], what: str, encoding: str = "utf-8") -> str:
    """The text of a file; `what` it should be is named in the error, such as `plan file`.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded.
    """
    try:
        return read_content(path).decode(encoding)
    except UnicodeDecodeError as error:
        raise FileError(f"`{path}` is no {what}: byte {error.start} is no UTF-8 text") from error


def begins_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Whether a file that can be read begins with these bytes, as it is."""
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise FileError(f"there is no file `{path}`") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error


def decompressed(content: bytes, path: str | os.PathLike[str] = "content") -> bytes:
    """The content, decompressed where it is compressed; `path` names it in messages.

    Raises
    ------
    FileError
        It cannot be decompressed.
    """
    if not content.startswith(_MAGIC):
        return content
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
