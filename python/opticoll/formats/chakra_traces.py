"""Chakra traces of a whole program, or of one collective in the form that ASTRA-sim reads.

Each rank has a file: `name.0.et`, `name.1.et` and so on. The path of any of these files, or of the
folder, refers to all files. The compiled core reads and writes the content. The files may also be
JSON (`name.0.json`), which `chakra_nodes` converts.

>>> import pathlib, tempfile, opticoll
>>> program = opticoll.Program.from_plan(opticoll.plan("all_gather", "crossbar:ranks=3", "ring"))
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> [path.name for path in write(program, 1024, folder / "ring.et")]
['ring.0.et', 'ring.1.et', 'ring.2.et']
>>> read(folder)
<Program ring of all_gather: 3 ranks, 3 thread blocks, 12 instructions>
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from opticoll._core import Program, ProgramError, Trace, TraceError, read_chakra
from opticoll.errors import ConfigError, FileError
from opticoll.formats import chakra_nodes
from opticoll.formats.atomic import write_file
from opticoll.formats.content import naming, read_content

NAME = re.compile(
    r"(?P<name>.*)\.(?P<rank>\d{1,7})\.(?P<form>et|json)(?P<packed>\.zst)?", re.DOTALL
)


def paths_of(path: str | os.PathLike[str]) -> list[Path]:
    """Returns the files of all ranks, ordered by rank.

    Raises
    ------
    FileError
        There are no files, files of some ranks are missing, or the folder contains several traces.
    """
    place = Path(path)
    named = NAME.fullmatch(place.name)
    folder = place if place.is_dir() else place.parent
    if named is None and folder is not place:
        raise FileError(f"`{path}`: traces are named by ranks, such as name.0.et and name.1.et")
    traces: dict[str, dict[int, Path]] = {}
    form = "et" if named is None else named["form"]
    try:
        for file in folder.iterdir():
            match = NAME.fullmatch(file.name)
            if match is None or match["form"] != form:
                continue
            if named is None or match["name"] == named["name"]:
                traces.setdefault(match["name"], {})[int(match["rank"])] = file
    except OSError as error:
        raise FileError(f"cannot read `{folder}`: {error.strerror or error}") from error
    if not traces:
        raise FileError(f"`{path}` has no traces, which are named name.0.et, name.1.et and so on")
    if len(traces) > 1:
        names = ", ".join(f"{name}.0.{form}" for name in sorted(traces)[:5])
        raise FileError(f"`{path}` has several traces; give a file of one of them: {names}")
    ((name, by_rank),) = traces.items()
    missing = next(rank for rank in range(len(by_rank) + 1) if rank not in by_rank)
    if missing < len(by_rank):
        absent = f"{name}.{missing}.{form}"
        raise FileError(f"`{path}`: there is no `{absent}`, but {len(by_rank)} others")
    return [by_rank[rank] for rank in range(len(by_rank))]


def read(path: str | os.PathLike[str]) -> Program:
    """Reads a program from the files of all ranks; each file may be compressed with zstd.

    Raises
    ------
    FileError
        A file is missing, or cannot be read or decompressed.
    ProgramError
        A trace is malformed; the message names the rank and the byte.
    """
    contents = [_binary(read_content(file), file) for file in paths_of(path)]
    with naming(path, ProgramError):
        return Program.from_chakra(contents)


def read_trace(path: str | os.PathLike[str], content: bytes, _: int) -> Trace:
    """Reads the traces of all ranks from a folder, or from files named `NAME.RANK.et`.

    If `path` is neither of these, `content` is the trace of one rank.

    Raises
    ------
    FileError
        A file is missing, or cannot be read or decompressed.
    TraceError
        A trace is malformed; the message names the byte and the rank.
    """
    files = os.path.isdir(path) or NAME.fullmatch(os.path.basename(path)) is not None
    if not files:
        contents = {Path(path): content}
    else:
        contents = {file: read_content(file) for file in paths_of(path)}
    try:
        return read_chakra([_binary(content, file) for file, content in contents.items()])
    except TraceError as error:
        if not any(map(chakra_nodes.is_json, contents.values())):
            raise
        # The position is one in the converted form.
        raise TraceError(re.sub(r"^byte \d+: of ", "", str(error))) from error


def _binary(content: bytes, file: Path) -> bytes:
    """Returns a trace in binary form; `file` names a trace in JSON in errors."""
    if not chakra_nodes.is_json(content):
        return content
    try:
        return chakra_nodes.binary_of(content)
    except ConfigError as error:
        raise FileError(f"{file}: {error}") from error


def write(program: Program, size_bytes: int, path: str | os.PathLike[str]) -> list[Path]:
    """Writes one file per rank and returns the paths; if an error occurs, writes no file.

    The names of the files follow from `path`, which may end in `.et` or `.0.et`.

    Raises
    ------
    FileError
        A file cannot be written.
    ProgramError
        The size cannot be cut into equal chunks.
    """
    place = Path(path)
    name = re.sub(r"(\.\d{1,7})?\.et$", "", place.name)
    traces = program.to_chakra(size_bytes)
    paths = [place.with_name(f"{name}.{rank}.et") for rank in range(len(traces))]
    for file, content in zip(paths, traces, strict=True):
        write_file(file, content)
    return paths
