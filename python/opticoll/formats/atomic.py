"""Files that appear only when they are complete.

>>> import pathlib, tempfile
>>> from opticoll.formats.atomic import replacing
>>> target = pathlib.Path(tempfile.mkdtemp()) / "numbers.csv"
>>> with replacing(target) as temporary:
...     _ = temporary.write_text("1,2")
>>> target.read_text()
'1,2'
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from opticoll.errors import FileError


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The path, if a file may be written there; found out before hours of work, not after.

    Raises
    ------
    FileError
        The folder does not exist or is no folder, may not be written to, or the path is a folder.
    """
    path = Path(path)
    # What a link stands for is replaced, not the link.
    real = _real(path)
    folder = real.parent if path.is_symlink() else path.parent
    if not folder.exists():
        raise FileError(f"cannot write `{path}`: there is no folder `{folder}`; create it first")
    if not folder.is_dir():
        raise FileError(f"cannot write `{path}`: `{folder}` is no folder")
    if real.is_dir():
        raise FileError(f"cannot write `{path}`: it is a folder; give the name of a file")
    needed = [real] if is_device(real) else [folder, *([real] if real.exists() else [])]
    if not all(os.access(place, os.W_OK) for place in needed):
        raise FileError(f"cannot write `{path}`: permission denied")
    return path


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made where it does not exist, if files may be written to it.

    Raises
    ------
    FileError
        There is a file of that name, or no folder can be made or written to there.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FileError(
            f"cannot write to `{path}`: it is not a folder; give the name of a folder"
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f"cannot make the folder `{path}`: {reason}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise FileError(f"cannot write to the folder `{path}`: permission denied")
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path with the same suffix, renamed to `path` at the end, removed on an error.

    A file that exists keeps its mode, a link what it points at; a device is written to directly.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    target = _real(check_writable(path))
    try:
        # A rename would replace a device or pipe by a file.
        if is_device(target):
            yield target
            return
        _remove_stale(target.parent)
        temporary = target.with_name(f"{_PREFIX}{os.getpid()}-{target.name}")
        with _held(temporary):
            yield temporary
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            os.replace(temporary, target)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


_PREFIX = ".opticoll-"
"""Begins the names of temporary files; the process number and the name of the file follow."""


@contextmanager
def _held(temporary: Path) -> Iterator[None]:
    """A file that is locked while it is written, and gone afterwards."""
    with temporary.open("wb") as file:
        _lock(file)
        try:
            yield
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _remove_stale(folder: Path) -> None:
    """Remove temporary files in a folder whose writers were killed: nobody holds their locks."""
    for path in folder.glob(f"{_PREFIX}[0-9]*-*"):
        if path.is_symlink() or not path.is_file():
            continue
        with suppress(OSError), path.open("r+b") as file:
            if _lock(file):
                path.unlink()


def _lock(file: IO[bytes]) -> bool:
    """Whether a file was locked for as long as it is open, which no other process had done."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _real(path: Path) -> Path:
    """The path behind links; a pipe behind `/dev/stdout` has none."""
    return path if is_device(path) else Path(os.path.realpath(path))


def is_device(path: Path) -> bool:
    """Whether something is there that is written to and not replaced: a device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()
