"""The bytes of a file, decompressed where it is compressed with zstd.

>>> import pathlib, tempfile, zstandard
>>> path = pathlib.Path(tempfile.mkdtemp()) / "some.zst"
>>> _ = path.write_bytes(zstandard.ZstdCompressor().compress(b"some bytes"))
>>> read_content(path)
b'some bytes'
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from opticoll._core import take_memory
from opticoll.errors import ConfigError, FileError, OpticollError

MOST_BYTES = 4 * 2**30
"""Decompressed bytes beyond which a file is taken for damaged or hostile."""

MOST_TEXT_BYTES = 2**28
"""The same of texts of others; the largest public schedules have some megabytes."""

BEGINNING = 2**24
"""Bytes in which a file shows its format."""

_COPIES = 3
"""How often a content is in memory: while its parts are joined, and while it becomes text."""

_MAGIC = b"\x28\xb5\x2f\xfd"

_PORTION = 4096
"""Compressed bytes that are decompressed at once; zstd makes at most some 100 MB of them."""


def read_content(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Returns the bytes of a file, MOST_BYTES at most where nothing else is said.

    Compression is recognised by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read or decompressed, or has more bytes than `most`.
    MemoryLimitError
        The content needs more memory than the limit.
    """
    limit = MOST_BYTES if most is None else most
    return decompressed(_read_bytes(path, limit), path, limit)


def read_text(
    path: str | os.PathLike[str], what: str, encoding: str = "utf-8", most: int | None = None
) -> str:
    """Returns the text of a file; `what` it should be is named in the error, such as `plan file`.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded, or has more bytes than `most`.
    """
    try:
        return read_content(path, most).decode(encoding)
    except UnicodeDecodeError as error:
        raise FileError(f"`{path}` is no {what}: byte {error.start} is no UTF-8 text") from error


def csv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a CSV file that are not empty, each with the line on which it ends.

    Spreadsheets put a mark first, which is left out.

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        It is no CSV; the message names file and line.
    """
    text = read_text(path, "CSV file", "utf-8-sig", MOST_TEXT_BYTES)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise ConfigError(f"{path}, line {rows.line_num}: this is no CSV: {error}") from error


@contextmanager
def naming(path: str | os.PathLike[str], kind: type[OpticollError]) -> Iterator[None]:
    """Errors of a kind, which the compiled core raises for a content, with the name of the file."""
    try:
        yield
    except kind as error:
        raise kind(f"{path}: {error}") from error


_PIPED: dict[tuple[int, int], bytes] = {}
"""What pipes held, by device and inode: the bytes of a pipe can be read once only."""


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Returns a file to read; a pipe is read once, and its bytes are kept.

    Raises
    ------
    OSError
        The file cannot be opened.
    FileError
        The pipe holds more than MOST_BYTES.
    MemoryLimitError
        The bytes of the pipe need more memory than the limit.
    """

    known = os.stat(path)
    key = (known.st_dev, known.st_ino)
    if stat.S_ISREG(known.st_mode):
        return open(path, "rb")
    if key not in _PIPED:
        content = bytearray()
        with open(path, "rb") as file:
            while portion := file.read(BEGINNING):
                content += portion
                _check_size(len(content), path, MOST_BYTES)
        _PIPED[key] = bytes(content)
    return io.BytesIO(_PIPED[key])


def begins_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Returns whether a file that can be read begins with these bytes, as it is."""
    try:
        with opened(path) as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def beginning(path: str | os.PathLike[str]) -> bytes:
    """Returns the first bytes of a file, decompressed.

    Raises
    ------
    FileError
        The file cannot be read or decompressed.
    """
    start = _read_bytes(path, None)
    if not start.startswith(_MAGIC):
        return start
    import zstandard

    try:
        return zstandard.ZstdDecompressor().stream_reader(start).read(BEGINNING)
    except zstandard.ZstdError as error:
        raise FileError(f"`{path}` is no intact zstd file: {error}") from error


def _check_size(size: int, path: str | os.PathLike[str], most: int) -> None:
    """Refuses a content that has more bytes than `most`, or needs more memory than the limit."""
    if size > most:
        raise FileError(f"`{path}` is too large: it holds more than {most} bytes")
    take_memory(f"reading `{path}`", _COPIES * size)


def _read_bytes(path: str | os.PathLike[str], most: int | None) -> bytes:
    """Returns all bytes of a file, or its first ones."""
    try:
        with opened(path) as file:
            if most is not None:
                _check_size(file.seek(0, os.SEEK_END), path, most)
                file.seek(0)
            return file.read(BEGINNING if most is None else -1)
    except FileNotFoundError as error:
        raise FileError(f"there is no file `{path}`") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error


def decompressed(
    content: bytes, path: str | os.PathLike[str] = "content", most: int = MOST_BYTES
) -> bytes:
    """Returns the content, decompressed where it is compressed; `path` names it in messages.

    Raises
    ------
    FileError
        It cannot be decompressed.
    MemoryLimitError
        It needs more memory than the limit.
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
            _check_size(len(text), path, most)
    except zstandard.ZstdError as error:
        raise FileError(f"`{path}` is no intact zstd file: {error}") from error
    if not reader.eof:
        raise FileError(f"`{path}` is cut short: its compressed data ends early")
    if reader.unused_data or start + _PORTION < len(content):
        raise FileError(f"`{path}` is no intact zstd file: bytes follow the end of its data")
    return bytes(text)
