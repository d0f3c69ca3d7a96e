"""MSCCL XML: programs of ranks, as the runtimes of NCCL's and RCCL's descendants execute them.

The text itself is read and written by the compiled core and described in the documentation.
"""

from __future__ import annotations

import os

from opticoll._core import Program, ProgramError
from opticoll.formats.atomic import replacing
from opticoll.formats.content import MOST_OF_A_SCHEDULE, read_text


def read(path: str | os.PathLike[str]) -> Program:
    """The program in a file, which may be compressed with zstd.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded as UTF-8.
    ProgramError
        It is malformed; the message names file and line.
    """
    text = read_text(path, "XML file", "utf-8-sig", MOST_OF_A_SCHEDULE)
    try:
        return Program.from_msccl(text)
    except ProgramError as error:
        raise ProgramError(f"{path}: {error}") from error


def write(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a program under a temporary name, then rename it to `path`.

    Raises
    ------
    FileError
        The file cannot be written.
    ProgramError
        Runtimes would refuse the program; the message says which limit it exceeds.
    """
    content = program.to_msccl().encode("utf-8")
    with replacing(path) as temporary:
        temporary.write_bytes(content)
