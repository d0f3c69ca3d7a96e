"""Store of studies: one SQLite file that several studies and sweeps may share.

The key of a result is a digest of the whole task, so no task is computed twice. A sweep adds new
results soon after their computation; one transaction may add several results. Other processes may
read the store at any time.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "studies.sqlite"
>>> with Store.open(path) as store:
...     store.keep([Result.of("ab12", [{"time_s": 0.5}])])
...     store.missing(["ab12", "cd34"])
['cd34']
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import zstandard

from opticoll._core import __version__
from opticoll.errors import FileError, OpticollError, UsageError
from opticoll.formats.atomic import check_writable
from opticoll.study.build_digest import build

T = TypeVar("T")

LAYOUT_VERSION = 1
"""Version of the layout of tables; only a newer opticoll writes a greater version."""

APPLICATION_ID = 0x6F70636C
"""Application identifier in SQLite files of opticoll: `opcl`."""

WAIT_S = 60.0
"""Seconds to wait while another process locks the file."""

ABSENT_S = 60.0
"""Seconds without a sign of life after which the claims of a sweep become invalid."""

MIN_COMPRESSED_LENGTH = 4096
"""Minimum number of characters of a result's rows for which they are compressed."""

_LAYOUT = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, study TEXT, command TEXT, version TEXT, build TEXT,
  python TEXT, machine TEXT, cores INTEGER, host TEXT, process INTEGER, started REAL, seen REAL,
  ended REAL);
CREATE TABLE studies (name TEXT PRIMARY KEY, command TEXT, axes TEXT, replicated INTEGER,
  text TEXT);
CREATE TABLE points (study TEXT, number INTEGER, key TEXT, replication INTEGER, axes TEXT,
  command TEXT, PRIMARY KEY (study, number)) WITHOUT ROWID;
CREATE TABLE results (key TEXT PRIMARY KEY, rows, error TEXT, seconds REAL, run INTEGER,
  finished REAL, refuted INTEGER) WITHOUT ROWID;
CREATE TABLE claims (key TEXT PRIMARY KEY, run INTEGER) WITHOUT ROWID;
CREATE TABLE found (study TEXT, number INTEGER, what TEXT);
"""


_KEEP = """
INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
  rows = excluded.rows, error = excluded.error, seconds = excluded.seconds, run = excluded.run,
  finished = excluded.finished, refuted = excluded.refuted WHERE error IS NOT NULL
"""


@dataclass(frozen=True)
class Result:
    """Result of a task: its rows as JSON text or an error, and the computing time in seconds.

    `refuted` is the number of rows whose plan violates a rule.
    """

    key: str
    text: str | None
    error: str | None
    seconds: float
    refuted: int = 0

    @staticmethod
    def of(key: str, rows: list[dict[str, Any]], seconds: float = 0.0) -> Result:
        return Result(key, as_text(rows), None, seconds, refuted_in(rows))

    @property
    def rows(self) -> list[dict[str, Any]] | None:
        """Rows, decoded from the JSON text."""
        if self.text is None:
            return None
        with _damaged(f"the result {self.key}"):
            rows = _json(self.text, list)
            if not all(isinstance(row, dict) for row in rows):
                raise TypeError("its rows are not objects")
        return rows


@dataclass(frozen=True)
class StudyRecord:
    """Study in a store: its command, the names of its axes, and the text of its file."""

    name: str
    command: str
    axes: list[str]
    replicated: bool
    text: str = ""


@dataclass(frozen=True)
class StoredPoint:
    """Point of a study with its command line, and its result or None."""

    study: str
    number: int
    replication: int
    axes: dict[str, Any]
    command: str
    result: Result | None
    found: str | None = None


class Store:
    """Open store, which also works as a context manager.

    Raises
    ------
    FileError
        The file cannot be read or written, is not a store, or was written by a newer opticoll.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, *, writes: bool) -> None:
        self.path, self._connection, self._writes = path, connection, writes
        self._run: int | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Opens a store for reading and writing; creates the file if it does not exist."""
        path = check_writable(path)
        with _named(path):
            connection = sqlite3.connect(
                path, timeout=WAIT_S, isolation_level=None, check_same_thread=False
            )
            store = cls(path, connection, writes=True)
            try:
                store._prepare()
            except BaseException:
                connection.close()
                raise
        return store

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Opens a store for reading."""
        path = Path(path)
        if not path.is_file():
            raise FileError(f"there is no store `{path}`")
        with _named(path):
            # Without write permission no sweep can run meanwhile, so the file is opened as
            # immutable.
            frozen = (
                ""
                if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)
                else "&immutable=1"
            )
            place = f"{path.absolute().as_uri()}?mode=ro{frozen}"
            connection = sqlite3.connect(place, uri=True, timeout=WAIT_S, isolation_level=None)
            store = cls(path, connection, writes=False)
            try:
                store._check()
            except BaseException:
                connection.close()
                raise
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Notes the end of the sweep in the store, and closes the file."""
        with suppress(sqlite3.Error, FileError):
            self._end()
        self._connection.close()

    def _prepare(self) -> None:
        (tables,) = self._one("SELECT count(*) FROM sqlite_master")
        if tables:
            self._check()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with self._changing():
            (tables,) = self._one("SELECT count(*) FROM sqlite_master")
            if not tables:
                for statement in filter(str.strip, _LAYOUT.split(";")):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {LAYOUT_VERSION}")
        self._check()

    def _check(self) -> None:
        (application,), (format,) = (
            self._one(f"PRAGMA {name}") for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID:
            raise FileError(f"`{self.path}` is not a store of opticoll")
        if format > LAYOUT_VERSION:
            raise FileError(
                f"`{self.path}` was written by a newer opticoll (layout {format}, known are those "
                f"up to {LAYOUT_VERSION}); update opticoll, or give another store"
            )

    def _one(self, query: str, *values: Any) -> Any:
        with _named(self.path):
            return self._connection.execute(query, values).fetchone()

    def _every(self, query: str, *values: Any) -> Iterator[Any]:
        """Yields the rows that an SQL query returns."""
        with _named(self.path):
            for row in self._connection.execute(query, values):  # noqa: UP028 - closes no cursor
                yield row

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Wraps changes in a transaction: all changes are stored, or none."""
        with _named(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def begin(self, command: str, study: str) -> None:
        """Notes the start of a sweep, with its study, its command, build and machine."""
        now = time.time()
        values = (
            *(study, command, __version__, build(), sys.version.split()[0], platform.platform()),
            *(os.cpu_count(), socket.gethostname(), os.getpid(), now, now),
        )
        with self._changing():
            cursor = self._connection.execute(
                "INSERT INTO runs (study, command, version, build, python, machine, cores, host,"
                " process, started, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            self._run = cursor.lastrowid

    def _end(self) -> None:
        if self._run is not None:
            with self._changing():
                self._connection.execute("DELETE FROM claims WHERE run = ?", (self._run,))
                self._connection.execute(
                    "UPDATE runs SET ended = ? WHERE id = ?", (time.time(), self._run)
                )

    def define(
        self, study: StudyRecord, points: Iterable[tuple[int, str, int, dict[str, Any], str]]
    ) -> None:
        """Replaces the points of a study in the store.

        A point is a tuple of its index, its key, the index of its replication, its axes and its
        command line.
        """
        with self._changing():
            self._connection.execute(
                "INSERT INTO studies VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                "command = excluded.command, axes = excluded.axes, "
                "replicated = excluded.replicated, text = excluded.text",
                (study.name, study.command, json.dumps(study.axes), study.replicated, study.text),
            )
            for part in ("points", "found"):
                self._connection.execute(f"DELETE FROM {part} WHERE study = ?", (study.name,))
            self._connection.executemany(
                "INSERT INTO points VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (study.name, number, key, replication, json.dumps(axes), command)
                    for number, key, replication, axes, command in points
                ),
            )

    def mark(self, study: str, findings: Iterable[tuple[int, str]]) -> None:
        """Stores the findings of a search, as pairs: the index of a point, and a description."""
        with self._changing():
            self._connection.executemany(
                "INSERT INTO found VALUES (?, ?, ?)",
                ((study, number, description) for number, description in findings),
            )

    def found(self, study: str) -> list[tuple[int, str, str]]:
        """Returns the findings of a search as tuples: index, command line and description."""
        query = (
            "SELECT points.number, points.command, what FROM found JOIN points "
            "ON points.study = found.study AND points.number = found.number "
            "WHERE found.study = ? ORDER BY found.rowid"
        )
        return list(self._every(query, study))

    def missing(self, keys: Iterable[str], *, retry: bool = False) -> list[str]:
        """Returns the keys without a result.

        With `retry`, keys whose result is an error are returned too.
        """
        finished = {
            key
            for key, error in self._every("SELECT key, error IS NOT NULL FROM results")
            if not (retry and error)
        }
        return [key for key in keys if key not in finished]

    def claim(self, keys: Sequence[str], *, retry: bool = False) -> list[str]:
        """Claims for this sweep all keys that have no result, and returns the claimed keys.

        Keys that another running sweep has claimed are left out. With `retry`, an error does not
        count as a result.
        """
        host, now = socket.gethostname(), time.time()
        with self._changing():
            self._connection.execute("UPDATE runs SET seen = ? WHERE id = ?", (now, self._run))
            free = []
            for key in self.missing_of(keys, retry=retry):
                claimed = self._one(
                    "SELECT host, process, seen FROM claims JOIN runs ON id = run "
                    "WHERE key = ? AND run <> ?",
                    *(key, self._run),
                )
                if claimed is None or not _alive(claimed, host, now):
                    free.append(key)
            self._connection.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?)", ((key, self._run) for key in free)
            )
        return free

    def missing_of(self, keys: Sequence[str], *, retry: bool) -> list[str]:
        """Returns the same keys as `missing`, but is faster if `keys` are few."""
        without = []
        for key in keys:
            row = self._one("SELECT error IS NOT NULL FROM results WHERE key = ?", key)
            if row is None or (retry and row[0]):
                without.append(key)
        return without

    def seen(self) -> None:
        """Stores the current time as this sweep's sign of life, which keeps its claims valid."""
        with self._changing():
            self._connection.execute(
                "UPDATE runs SET seen = ? WHERE id = ?", (time.time(), self._run)
            )

    def keep(self, results: Iterable[Result]) -> None:
        """Stores results; an error never replaces rows."""
        now = time.time()
        rows = [
            (
                *(result.key, _packed(result.text), result.error, result.seconds),
                *(self._run, now, result.refuted),
            )
            for result in results
        ]
        with self._changing():
            self._connection.executemany(_KEEP, rows)
            keys = ((row[0],) for row in rows)
            self._connection.executemany("DELETE FROM claims WHERE key = ?", keys)

    def result(self, key: str) -> Result | None:
        """Returns the result of a task, or None if it is missing."""
        row = self._one("SELECT rows, error, seconds FROM results WHERE key = ?", key)
        return None if row is None else self._result(key, *row)

    def _result(self, key: str, packed: Any, *others: Any) -> Result:
        with _damaged(f"the store `{self.path}`"):
            return Result(key, _unpacked(packed), *others)

    def merge(self, source: Store) -> int:
        """Copies the results of another store into this store; returns the number of results."""
        query = "SELECT key, rows, error, seconds, refuted FROM results"
        rows = [source._result(*row) for row in source._every(query)]
        self.keep(rows)
        return len(rows)

    def seconds(self, keys: Iterable[str]) -> list[float]:
        """Returns the computing times of the tasks that have rows, in seconds."""
        query = "SELECT key, seconds FROM results WHERE error IS NULL"
        times = dict(self._every(query))
        return [times[key] for key in keys if key in times]

    def studies(self) -> list[StudyRecord]:
        """Returns all studies, ordered by the start of their first sweep."""
        with _damaged(f"the store `{self.path}`"):
            return [
                StudyRecord(name, command, _json(axes, list), bool(replicated), text)
                for name, command, axes, replicated, text in self._every(
                    "SELECT name, command, axes, replicated, text FROM studies ORDER BY rowid"
                )
            ]

    def results(self, study: str | None = None) -> Iterator[StoredPoint]:
        """Yields the points of one study in order, or of all studies if `study` is None.

        Raises
        ------
        UsageError
            The store has no study with this name.
        """
        names = [record.name for record in self.studies()]
        if study is not None and study not in names:
            raise UsageError(f"`{self.path}` has no study `{study}`; it has {', '.join(names)}")
        query = (
            "SELECT number, replication, axes, command, points.key, rows, error, seconds, "
            "(SELECT group_concat(what, '; ') FROM found WHERE found.study = points.study AND "
            "found.number = points.number) "
            "FROM points LEFT JOIN results ON results.key = points.key "
            "WHERE points.study = ? ORDER BY number"
        )
        for name in [study] if study is not None else names:
            for row in self._every(query, name):
                number, replication, axes, command, key, rows, error, seconds, finding = row
                has_result = seconds is not None
                result = self._result(key, rows, error, seconds) if has_result else None
                with _damaged(f"the store `{self.path}`"):
                    point_axes = _json(axes, dict)
                yield StoredPoint(name, number, replication, point_axes, command, result, finding)

    def tally(self, keys: Iterable[str]) -> tuple[int, int]:
        """Returns the number of failed tasks, and the number of rows whose plan violates a rule."""
        query = (
            "SELECT key, error IS NOT NULL, refuted FROM results "
            "WHERE error IS NOT NULL OR refuted > 0"
        )
        marks_by_key = {key: marks for key, *marks in self._every(query)}
        marks = [marks_by_key[key] for key in keys if key in marks_by_key]
        return sum(error for error, _ in marks), sum(refuted for _, refuted in marks)

    def runs(self) -> list[dict[str, Any]]:
        """Returns the sweeps that wrote to the store.

        Each sweep has its study, command, version, build, machine and times.
        """
        names = (
            *("id", "study", "command", "version", "build", "python", "machine", "cores", "host"),
            *("process", "started", "seen", "ended"),
        )
        rows = self._every(f"SELECT {', '.join(names)} FROM runs ORDER BY id")
        return [dict(zip(names, row, strict=True)) for row in rows]


def _alive(run: tuple[str, int, float], this_host: str, now: float) -> bool:
    """Returns whether a sweep still runs.

    `run` has the host, the process and the time of the last sign of life of the sweep.
    """
    host, process, seen = run
    if now - seen > ABSENT_S:
        return False
    if host != this_host or os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def as_text(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def refuted_in(rows: list[dict[str, Any]]) -> int:
    """Returns the number of rows whose plans violate a rule."""
    return sum(not row.get("verified", True) for row in rows)


def _packed(text: str | None) -> str | bytes | None:
    """Returns a text, compressed to bytes if it is long."""
    short = text is None or len(text) < MIN_COMPRESSED_LENGTH
    return text if short else zstandard.ZstdCompressor(3).compress(str(text).encode())


def _unpacked(packed: str | bytes | None) -> str | None:
    if isinstance(packed, bytes):
        return zstandard.ZstdDecompressor().decompress(packed).decode()
    return packed


def _json(text: Any, kind: type[T]) -> T:
    """Decodes a JSON text, and checks that the content is of type `kind`."""
    content = json.loads(text)
    if not isinstance(content, kind):
        raise TypeError(f"`{text[:80]}` is not a {kind.__name__}")
    return content


@contextmanager
def _damaged(noun: str) -> Iterator[None]:
    """Turns decoding errors of stored values into a FileError on a damaged file."""
    try:
        yield
    except OpticollError:
        raise
    except (zstandard.ZstdError, ValueError, TypeError, RecursionError) as error:
        raise FileError(f"{noun} is damaged: {error}") from error


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turns errors of SQLite into FileErrors that name the store's file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise FileError(f"the store `{path}` is damaged: {error}") from error
    except sqlite3.DatabaseError as error:
        text = str(error).partition(" with text ")[0]
        if "not a database" in text:
            raise FileError(f"`{path}` is not a store of opticoll: {text}") from error
        if any(word in text for word in ("malformed", "decode", "no such")):
            raise FileError(f"the store `{path}` is damaged: {text}") from error
        raise FileError(f"cannot read or write the store `{path}`: {text}") from error
