"""Files that appear under their names only after they are complete.

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
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import mkdtemp

from opticoll.errors import FileError


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Checks, before any work begins, that a file can be written to `path`, and returns the path.

    Raises
    ------
    FileError
        The folder does not exist, is a file or cannot be written to; or the path is a folder.
    """
    path = Path(path)
    # A symbolic link stays; the file to which it leads is replaced.
    real = _real(path)
    folder = real.parent if path.is_symlink() else path.parent
    if not folder.exists():
        raise FileError(f"cannot write `{path}`: there is no folder `{folder}`; create it first")
    if not folder.is_dir():
        raise FileError(f"cannot write `{path}`: `{folder}` is not a folder")
    if real.is_dir():
        raise FileError(f"cannot write `{path}`: it is a folder; give the name of a file")
    needed = [real] if is_device(real) else [folder, *([real] if real.exists() else [])]
    if not all(os.access(place, os.W_OK) for place in needed):
        raise FileError(f"cannot write `{path}`: permission denied")
    return path


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Creates a folder if necessary, checks that files can be written to it, and returns its path.

    Raises
    ------
    FileError
        A file has this name, or the folder cannot be created or written to.
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
    """Yields a temporary path; at the end, the file at this path replaces `path`.

    If an error occurs, the temporary file is removed, and `path` does not change.

    If `path` exists, its mode stays. If `path` is a link, the file behind it is replaced. If `path`
    is a device, it is written to directly.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    target = _real(check_writable(path))
    with together() as files, _named(path):
        # A rename would replace the device or pipe by a file.
        if is_device(target):
            yield target
            return
        temporary = files.folder_in(target.parent) / target.name
        yield temporary
        files.complete.append((path, temporary, target))


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Writes a file in the same way as `replacing`; text is encoded as UTF-8."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def together() -> Iterator[_Files]:
    """Replaces files at the end of a `with` block: all files or, if an error occurs, none.

    Raises
    ------
    FileError
        A file cannot be written.
    """
    outer = _OPEN.get()
    if outer is not None:
        yield outer
        return
    with _Files() as files:
        before = _OPEN.set(files)
        try:
            yield files
        finally:
            _OPEN.reset(before)
        for path, temporary, target in files.complete:
            with _named(path):
                if target.exists():
                    temporary.chmod(target.stat().st_mode & 0o7777)
                os.replace(temporary, target)


class _Files(ExitStack):
    """Files that appear at the same time; until then, they are in locked temporary folders."""

    def __init__(self) -> None:
        super().__init__()
        self.complete: list[tuple[str | os.PathLike[str], Path, Path]] = []
        """For each file: the path as given, the temporary file, and the file to replace."""
        self._folders: dict[Path, Path] = {}

    def folder_in(self, folder: Path) -> Path:
        """Returns the temporary folder in `folder`; the first call creates the temporary folder.

        Removes temporary folders of killed processes.
        """
        if folder not in self._folders:
            for abandoned in folder.glob(f"{_PREFIX}*"):
                if abandoned.is_dir() and not abandoned.is_symlink():
                    with _locked(abandoned) as is_ours:
                        if is_ours:
                            shutil.rmtree(abandoned, ignore_errors=True)
            temporary = Path(mkdtemp(prefix=_PREFIX, dir=folder))
            self.callback(shutil.rmtree, temporary, ignore_errors=True)
            self.enter_context(_locked(temporary))
            self._folders[folder] = temporary
        return self._folders[folder]


_OPEN: ContextVar[_Files | None] = ContextVar("files that are written together", default=None)

_PREFIX = ".opticoll-writing-"
"""Prefix of the names of temporary folders."""


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns errors of the operating system into FileErrors that name the file."""
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Locks a folder within a `with` block; yields False if another process has locked it."""
    with ExitStack() as stack:
        try:
            import fcntl

            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (ImportError, OSError):
            yield False
        else:
            yield True


def _real(path: Path) -> Path:
    """Resolves symbolic links, except for a device such as `/dev/stdout`."""
    return path if is_device(path) else Path(os.path.realpath(path))


def is_device(path: Path) -> bool:
    """Returns whether a path is a device or a pipe, which cannot be replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()
