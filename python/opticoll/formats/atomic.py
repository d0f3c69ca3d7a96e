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
from contextlib import contextmanager
from pathlib import Path

from opticoll.errors import FileError

__all__ = ["check_writable", "replacing"]


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The path, if a file may be written there; found out before hours of work, not after.

    Raises
    ------
    FileError
        The folder does not exist or is no folder, may not be written to, or the path is a folder.
    """
    path = Path(path)
    folder = path.parent
    if not folder.exists():
        raise FileError(f"cannot write `{path}`: there is no folder `{folder}`; create it first")
    if not folder.is_dir():
        raise FileError(f"cannot write `{path}`: `{folder}` is no folder")
    if path.is_dir():
        raise FileError(f"cannot write `{path}`: it is a folder; give the name of a file")
    if not os.access(path if _is_device(path) else folder, os.W_OK):
        raise FileError(f"cannot write `{path}`: permission denied")
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path with the same suffix, renamed to `path` at the end, removed on an error.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    target = check_writable(path)
    if _is_device(target):
        # A rename would replace the device or pipe by a file.
        yield target
        return
    temporary = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()
