"""Content of files as bytes or text, decompressed if a file is compressed with zstd.

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
from pathlib import Path
from typing import BinaryIO

from opticoll._core import take_memory
from opticoll.errors import ConfigError, FileError, OpticollError
from opticoll.formats.recognition import BYTE_ORDER_MARK, recognize, refusal

MAX_BYTES = 4 * 2**30
"""Maximum number of decompressed bytes; a larger file is probably damaged or hostile."""

MAX_TEXT_BYTES = 2**28
"""Maximum number of decompressed bytes of a foreign text; public schedules have a few MB."""

BEGINNING_BYTES = 2**24
"""Number of bytes at the beginning of a file that determine its format."""

_COPIES = 3
"""Number of copies of a content in memory while the content is joined and decoded."""

_MAGIC = b"\x28\xb5\x2f\xfd"

_PORTION_BYTES = 4096
"""Number of compressed bytes that are decompressed at once; they expand to about 100 MB at most."""


def read_content(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Returns the bytes of a file; raises an error for more than `most` bytes (default: MAX_BYTES).

    Compression is recognized by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read or decompressed, or has more bytes than `most`.
    MemoryLimitError
        The content needs more memory than the limit.
    """
    limit = MAX_BYTES if most is None else most
    return decompressed(_read_bytes(path, limit), path, limit)


def read_text(path: str | os.PathLike[str], noun: str, most: int | None = None) -> str:
    """Returns the text of a file; `noun` names the file in errors, such as `plan file`.

    A byte order mark at the beginning, which spreadsheets and editors write, is skipped.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded, or has more bytes than `most`.
    """
    content = read_content(path, most)
    try:
        return content.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        # A text in another encoding begins with characters that are the same in UTF-8.
        if error.start <= 1 and (kind := recognize(content)):
            raise FileError(refusal(path, kind, f"a {noun}")) from error
        raise FileError(f"`{path}` is not a {noun}: byte {error.start} is not UTF-8") from error


def csv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields the non-empty rows of a CSV file, each with the number of the line on which it ends.

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        The file is no valid CSV; the message names file and line.
    """
    text = read_text(path, "CSV file", MAX_TEXT_BYTES)
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
    """Adds the name of the file to errors of class `kind` that the core raises for the content."""
    try:
        yield
    except kind as error:
        raise kind(f"{path}: {error}") from error


_PIPED: dict[tuple[int, int], bytes] = {}
"""Contents of pipes, by device and inode, since the bytes of a pipe can be read only once."""


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a file for reading; a pipe is read only once, and its bytes are cached.

    Raises
    ------
    OSError
        The file cannot be opened.
    FileError
        The pipe contains more than MAX_BYTES bytes.
    MemoryLimitError
        The bytes of the pipe need more memory than the limit.
    """

    status = os.stat(path)
    key = (status.st_dev, status.st_ino)
    if stat.S_ISREG(status.st_mode):
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
    """Returns whether a file is readable and begins with `magic`, without decompressing it."""
    try:
        with opened(path) as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def beginning(path: str | os.PathLike[str]) -> bytes:
    """Returns the first bytes of a file after decompression.

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
    """Raises an error if a content has more than `most` bytes, or exceeds the memory limit."""
    if size > most:
        raise FileError(f"`{path}` is too large: it holds more than {most} bytes")
    take_memory(f"reading `{path}`", _COPIES * size)


def _read_bytes(path: str | os.PathLike[str], most: int | None) -> bytes:
    """Returns all bytes of a file, at most `most`.

    If `most` is None, reads only the beginning of the file.
    """
    try:
        with opened(path) as file:
            if most is not None:
                _check_size(file.seek(0, os.SEEK_END), path, most)
                file.seek(0)
            return file.read(BEGINNING_BYTES if most is None else -1)
    except FileNotFoundError as error:
        first = Path(path).with_suffix(".0.et")
        hint = f"; the file of its first rank is `{first}`" if first.is_file() else ""
        raise FileError(f"there is no file `{path}`{hint}") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error


def decompressed(
    content: bytes, path: str | os.PathLike[str] = "content", most: int = MAX_BYTES
) -> bytes:
    """Decompresses a content if it is compressed; `path` names the content in errors.

    Raises
    ------
    FileError
        The content cannot be decompressed.
    MemoryLimitError
        The content needs more memory than the limit.
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
