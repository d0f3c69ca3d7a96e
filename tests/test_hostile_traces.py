"""Traces of strangers: archives that would write elsewhere, tables that contradict themselves."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from python_checks import pack

from opticoll.formats import otf2_archive, parquet_table
from opticoll.formats.content import read_content
from support import Run
from test_bad_input import check
from test_hostile import ESCAPE, HEADER, shown
from test_replay import DATA, as_parquet, real


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, link
    return header


def sparse() -> tarfile.TarInfo:
    """Returns the header of a sparse file that claims a terabyte in no bytes."""
    header = member("traces.def")
    header.pax_headers = {
        "GNU.sparse.map": "0,0",
        "GNU.sparse.size": str(2**40),
        "GNU.sparse.name": "traces.def",
    }
    return header


DEEP = "/".join(["d" * 200] * 20)

# Members of a tar file, and words of the message.
TARS: dict[str, tuple[list[tarfile.TarInfo], tuple[str, ...]]] = {
    "a link out of the folder": ([member("a", tarfile.SYMTYPE, "..")], ("`a`", "links")),
    "a link and a file beyond it": (
        [member("a", tarfile.SYMTYPE, "../out"), member("a/planted")],
        ("`a`", "links"),
    ),
    "a hard link": ([member("a", tarfile.LNKTYPE, "../../etc/passwd")], ("`a`", "links")),
    "a pipe": ([member("a", tarfile.FIFOTYPE)], ("`a`", "neither a file nor a folder")),
    "a device": ([member("a", tarfile.CHRTYPE)], ("`a`", "devices")),
    "an absolute name": ([member("/tmp/planted")], ("`/tmp/planted`", "below its own folder")),
    "a name above": ([member("a/../../planted")], ("`a/../../planted`", "below its own folder")),
    "a folder above": ([member("..", tarfile.DIRTYPE)], ("`..`", "below its own folder")),
    "a name with an escape": ([member("a" + ESCAPE)], ("\\u001b", "below its own folder")),
    "one name twice": ([member("a"), member("a")], ("no intact tar file", "exists")),
    "a file within a file": ([member("a"), member("a/b")], ("no intact tar file",)),
    "a name too long for a folder": ([member("a" * 300)], ("no intact tar file", "too long")),
    "a path too long": ([member(DEEP)], ("no intact tar file", "too long")),
    "a file with holes": ([sparse()], ("too large",)),
    "no anchor": ([member("a")], ("0 anchor files",)),
    "two anchors": ([member("a.otf2"), member("b.otf2")], ("2 anchor files",)),
    "an empty anchor": ([member("a.otf2")], ("no intact OTF2 archive",)),
}


@pytest.mark.parametrize("name", TARS)
def test_an_archive_writes_nothing_outside_its_own_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    members, words = TARS[name]
    path, scratch = tmp_path / "run.tar", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as packed:
        for header in members:
            packed.addfile(header)
    check(shown(run), tmp_path, ["replay", str(path)], *words)
    assert not list(scratch.iterdir())
    assert not Path("/tmp/planted").exists()


def test_an_archive_of_too_many_bytes_or_files_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.tar"
    with tarfile.open(path, "w") as packed:
        for number in range(10):
            header = member(f"{number}")
            header.size = 1000
            packed.addfile(header, io.BytesIO(bytes(1000)))
    for limit, most in (("MAX_FILES", 9), ("MAX_BYTES", 9999)):
        with monkeypatch.context() as limited:
            limited.setattr(otf2_archive, limit, most)
            check(run, tmp_path, ["replay", str(path)], "too large", str(most))


def files_of(name: str) -> dict[str, bytes]:
    """Returns the files of an archive by name."""
    packed = io.BytesIO(read_content(DATA / f"{name}.A.16.otf2.tar.zst"))
    with tarfile.open(fileobj=packed) as tar:
        members = [(one.name, tar.extractfile(one)) for one in tar.getmembers() if one.isfile()]
        return {name: file.read() for name, file in members if file is not None}


def test_a_damaged_archive_is_refused_in_one_line(tmp_path: Path) -> None:
    """The C library says much more, on the standard error of the process."""
    files = files_of("ft")
    path = tmp_path / "run.tar"
    for damaged in ("ft.A.16/traces.def", "ft.A.16/traces/13.evt", "ft.A.16/traces/0.def"):
        content = files[damaged]
        changed = {**files, damaged: content[: len(content) // 2] + b"\xff" * 40}
        path.write_bytes(pack({name: bytearray(inside) for name, inside in changed.items()}))
        command = [sys.executable, "-m", "opticoll", "replay", str(path)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (finished.returncode, finished.stdout) == (2, ""), damaged
        (line,) = finished.stderr.splitlines()
        assert line.startswith(f"opticoll: error: `{path}` is no intact OTF2 archive: "), damaged


def test_an_archive_that_keeps_its_library_busy_is_given_up(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anchor file that announces 2.6 thousand million properties: seconds of computing."""
    anchor = "is.A.16/traces.otf2"
    files = {name: bytearray(content) for name, content in files_of("is").items()}
    files[anchor][48] = 0x9B
    path = tmp_path / "run.tar"
    path.write_bytes(pack(files))
    monkeypatch.setattr(otf2_archive, "LEAST_SECONDS", 1)
    monkeypatch.setattr(otf2_archive, "SECONDS_PER_MEGABYTE", 0)
    check(shown(run), tmp_path, ["replay", str(path)], "no intact OTF2", "more than 1 s")


def test_no_module_of_the_current_folder_reads_an_archive(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "otf2.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)
    assert run("replay", DATA / "ep.A.16.otf2.tar.zst").code == 0


EXCHANGE = "0,Alltoallv,,12,9,,0,,1\n# v 5 7\n1,Alltoallv,,9,12,,0,,1\n# v {}\n"

# Tables that contradict themselves, and words of the message.
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "sizes that make other bytes": (EXCHANGE.format("4 6"), ("line 6", "10 bytes", "sends 9")),
    "sizes beyond 64 bits": (
        EXCHANGE.format(f"{2**64 - 1} 10"),
        ("line 6", f"{2**64 + 9} bytes", "sends 9"),
    ),
    "a cell too many": ("0,Init,,0,0,,0,,0,7\n", ("line 3", "10 cells", "9 columns")),
    "an escape for a call": (f"0,{ESCAPE[:4]},,0,0,,0,,0\n", ("line 3", "`\\u001b[2K`")),
    "a call of a megabyte": (f"0,{'x' * 10**6},,0,0,,0,,0\n", ("line 3", "xx... (1000000")),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_contradicts_itself_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    rows, words = TABLES[name]
    path = tmp_path / "trace.csv"
    path.write_text(f"# ranks=2\n{HEADER}\n{rows}")
    check(shown(run), tmp_path, ["replay", str(path)], *words)


COLUMNS: dict[str, list[Any]] = {
    "rank": [0, 1],
    "call": ["Init", "Init"],
    "peer": [None, None],
    "send_bytes": [0, 0],
    "recv_bytes": [0, 0],
    "tag": [None, None],
    "comm": [0, 0],
    "req": [None, None],
    "compute_ns": [5, 7],
}

# Changed columns and metadata, and words of the message.
PARQUET: dict[str, tuple[dict[str, list[Any]], dict[str, str], tuple[str, ...]]] = {
    "a row within a cell": (
        {"call": ["Init", "Init,,0,0,,0,,0\n1,Finalize"]},
        {},
        ("row 2", "unknown call `Init,,0"),
    ),
    "a comment within a cell": ({"call": ["Init", "#"]}, {}, ("row 2", "unknown call `#`")),
    "a list in a cell": ({"tag": [[1], [2]]}, {}, ("row 1", "tag", "`[1]`")),
    "an unknown call": ({"call": ["Init", "Send_all"]}, {}, ("row 2", "unknown call `Send_all`")),
    "a number that is none": ({"compute_ns": [5.5, 7.0]}, {}, ("row 1", "`5.5`", "nanoseconds")),
    "sizes that make other bytes": (
        {"call": ["Alltoallv", "Init"], "sizes": [[1, 2], None]},
        {},
        ("row 1", "3 bytes", "sends 0"),
    ),
    "words for sizes": (
        {"call": ["Alltoallv", "Init"], "sizes": [["0", "0\n1,Init"], None]},
        {},
        ("row 1", "sizes"),
    ),
    "ranks in words": ({}, {"ranks": "2 ranks=3"}, ("`ranks`", "whole number")),
    "a row within the ranks of a communicator": (
        {},
        {"comm 1": "0 1\n0,Init"},
        ("`comm 1`", "whole number"),
    ),
    "a row for the name of a communicator": (
        {},
        {"comm 1\n0": "0 1"},
        ("comm 1", "whole number"),
    ),
    "more rows than are read": ({}, {}, ("too large", "2 rows")),
}


@pytest.mark.parametrize("name", PARQUET)
def test_a_parquet_table_holds_its_rows_and_no_more(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import pyarrow
    from pyarrow import parquet

    columns, metadata, words = PARQUET[name]
    if name == "more rows than are read":
        monkeypatch.setattr(parquet_table, "MAX_ROWS", 1)
    path = tmp_path / "trace.parquet"
    table = pyarrow.table({**COLUMNS, **columns})
    parquet.write_table(table.replace_schema_metadata({"ranks": "2", **metadata}), path)
    check(shown(run), tmp_path, ["replay", str(path)], *words)


def test_no_thread_outlives_the_reading_of_a_parquet_file(tmp_path: Path) -> None:
    """A thread that outlives the reading may abort the process at its end, after the result."""
    path = tmp_path / "trace.parquet"
    as_parquet(real("is"), path)
    code = (
        "import os, sys, pyarrow.parquet\n"
        "from opticoll.formats import trace_file\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "trace_file.read(sys.argv[1])\n"
        "print(threads() - before)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "0\n"
