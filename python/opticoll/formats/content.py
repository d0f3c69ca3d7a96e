"""Bytes of a file, decompressed if the file is compressed with zstd.

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

MAX_BYTES = 4 * 2**30
"""Maximum number of decompressed bytes; a larger file is probably damaged or hostile."""

MAX_TEXT_BYTES = 2**28
"""Maximum number of decompressed bytes of a foreign text; public schedules have a few megabytes."""

BEGINNING_BYTES = 2**24
"""Number of bytes from which the format of a file is recognized."""

_COPIES = 3
"""Number of copies of a content in memory while its parts are joined and decoded."""

_MAGIC = b"\x28\xb5\x2f\xfd"

_PORTION_BYTES = 4096
"""Number of compressed bytes decompressed at once, which become at most about 100 MB."""


def read_content(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Returns the bytes of a file, at most `most` (default: MAX_BYTES).

    Compression is recognised by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read or decompressed, or has more bytes than `most`.
    MemoryLimitError
        The content needs more memory than the limit.
    """
    limit = MAX_BYTES if most is None else most
    return decompressed(_read_bytes(path, limit), path, limit)


def read_text(
    path: str | os.PathLike[str], what: str, encoding: str = "utf-8", most: int | None = None
) -> str:
    """Returns the text of a file; errors call the file `what`, such as `plan file`.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded, or has more bytes than `most`.
    """
    try:
        return read_content(path, most).decode(encoding)
    except UnicodeDecodeError as error:
        raise FileError(f"`{path}` is not a {what}: byte {error.start} is not UTF-8") from error


def csv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a CSV file that are not empty, each with the number of its last line.

    A byte order mark, which spreadsheets write first, is skipped.

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        The file is not CSV; the message names file and line.
    """
    text = read_text(path, "CSV file", "utf-8-sig", MAX_TEXT_BYTES)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise ConfigError(
            f"{path}, line {rows.line_num}: this is not valid CSV: {error}"
        ) from error


@contextmanager
def naming(path: str | os.PathLike[str], kind: type[OpticollError]) -> Iterator[None]:
    """Adds the name of the file to errors of a kind, which the core raises for the content."""
    try:
        yield
    except kind as error:
        raise kind(f"{path}: {error}") from error


_PIPED: dict[tuple[int, int], bytes] = {}
"""Contents of pipes, by device and inode, since the bytes of a pipe can be read only once."""


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a file for reading; a pipe is read once, and its bytes are kept.

    Raises
    ------
    OSError
        The file cannot be opened.
    FileError
        The pipe holds more than MAX_BYTES.
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
            while portion := file.read(BEGINNING_BYTES):
                content += portion
                _check_size(len(content), path, MAX_BYTES)
        _PIPED[key] = bytes(content)
    return io.BytesIO(_PIPED[key])


def begins_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Returns whether a file can be read and begins with some bytes, without decompression."""
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
        return zstandard.ZstdDecompressor().stream_reader(start).read(BEGINNING_BYTES)
    except zstandard.ZstdError as error:
        raise FileError(f"`{path}` is not an intact zstd file: {error}") from error


def _check_size(size: int, path: str | os.PathLike[str], most: int) -> None:
    """Refuses a content that has more than `most` bytes or needs more memory than the limit."""
    if size > most:
        raise FileError(f"`{path}` is too large: it holds more than {most} bytes")
    take_memory(f"reading `{path}`", _COPIES * size)


def _read_bytes(path: str | os.PathLike[str], most: int | None) -> bytes:
    """Returns the beginning of a file if `most` is None, else all bytes, at most `most`."""
    try:
        with opened(path) as file:
            if most is not None:
                _check_size(file.seek(0, os.SEEK_END), path, most)
                file.seek(0)
            return file.read(BEGINNING_BYTES if most is None else -1)
    except FileNotFoundError as error:
        raise FileError(f"there is no file `{path}`") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error


def decompressed(
    content: bytes, path: str | os.PathLike[str] = "content", most: int = MAX_BYTES
) -> bytes:
    """Returns the content, decompressed if it is compressed; `path` names the content in messages.

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
        for start in range(0, len(content), _PORTION_BYTES):
            if reader.eof:
                break
            text += reader.decompress(content[start : start + _PORTION_BYTES])
            _check_size(len(text), path, most)
    except zstandard.ZstdError as error:
        raise FileError(f"`{path}` is not an intact zstd file: {error}") from error
    if not reader.eof:
        raise FileError(f"`{path}` is cut short: its compressed data ends early")
    if reader.unused_data or start + _PORTION_BYTES < len(content):
        raise FileError(f"`{path}` is not an intact zstd file: bytes follow the end of its data")
    return bytes(text)
