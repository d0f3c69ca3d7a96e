"""Tables as Parquet files hold what JSON says, with its types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet

from opticoll import errors
from opticoll.formats import named_format
from support import RING, Run


def test_a_table_of_a_command_holds_what_its_json_says(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    arguments = ("--fabric", RING, "--algorithms", "ring,optree", "--sizes", "1KiB,1MiB")
    finished = run("compare", "all_gather", *arguments, "--csv", path, "--json")
    assert finished.code == 0
    table = parquet.read_table(path)
    assert table.to_pylist() == json.loads(finished.out)
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["algorithm"], types["time_s"], types["time_ps"]) == ("string", "double", "int64")
    assert (types["verified"], types["bound_steps"]) == ("bool", "int64")
    assert types["candidates"].startswith("list<element: struct<name: string, steps: int64")


def test_transfers_are_numbers_and_words(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ring.parquet"
    options = ("--fabric", "wdm_ring:ranks=3,wavelengths=1", "--algorithm", "ring")
    assert run("export", "all_gather", *options, "--output", path).code == 0
    table = parquet.read_table(path)
    # Two steps: everyone's own block, then the one received, to the next rank clockwise.
    assert table.column("source").to_pylist() == [0, 1, 2, 0, 1, 2]
    assert table.column("chunk").to_pylist() == [0, 1, 2, 2, 0, 1]
    assert table.column("slot").to_pylist() == [0, 0, 0, 1, 1, 1]
    assert table.column("direction").to_pylist() == ["cw"] * 6


def test_what_parquet_cannot_hold_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    written = named_format("rows", str(path))
    assert written.name == "parquet"
    for value in (2**70, object()):
        with pytest.raises(errors.FileError, match="Parquet cannot hold"):
            written.write([{"number": value}], path)
    with pytest.raises(errors.FileError, match="Parquet cannot hold"):
        written.write([{"number": 1}, {"number": "one"}], path)
    assert list(tmp_path.iterdir()) == []
