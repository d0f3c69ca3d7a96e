"""Results of studies as xarray Datasets and as Arrow tables."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import opticoll
from opticoll.errors import MemoryLimitError, UsageError
from opticoll.study.results import Results

RANKS, WAVELENGTHS, SIZES = [4, 8], [1, 2], ["1KiB", "1MiB"]

RINGS = f"""
study: rings
command: simulate
options: {{collective: all_gather, fabric: wdm_ring, algorithm: ring}}
grid: {{fabric.ranks: {RANKS}, fabric.wavelengths: {WAVELENGTHS}, size: {SIZES}}}
"""


def swept(folder: Path, text: str) -> Results:
    (folder / "study.yaml").write_text(text)
    opticoll.sweep(folder / "study.yaml", jobs=1)
    return opticoll.results(folder / "study.sqlite")


def test_axes_are_the_dimensions_of_a_dataset(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    results = swept(tmp_path, RINGS)
    dataset = results.to_xarray()
    assert dict(dataset.sizes) == {"fabric.ranks": 2, "fabric.wavelengths": 2, "size": 2}
    assert dataset["size"].values.tolist() == SIZES
    # A ring takes a step for each other rank.
    for ranks in RANKS:
        assert (dataset["steps"].sel({"fabric.ranks": ranks}) == ranks - 1).all()
    assert dataset["steps"].dtype == np.int64
    assert dataset["verified"].dtype == bool
    assert dataset["time_s"].attrs == {"units": "s"}
    for row in results:
        at = {name: row[name] for name in results.axes}
        assert dataset["time_ps"].sel(at).item() == row["time_ps"]
        assert dataset["command"].sel(at).item() == row["command"]


def test_places_without_a_row_are_missing(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    swept(tmp_path, RINGS)
    few = opticoll.results(tmp_path / "study.sqlite", where="ranks == 8 or size <= 1KiB")
    dataset = few.to_xarray()
    missing = dataset["time_ps"].sel({"fabric.ranks": 4, "size": "1MiB"})
    assert np.isnan(missing).all()
    assert int(dataset["time_ps"].count()) == len(few) == 6
    commands = dataset["command"]
    assert int(commands.isnull().sum()) == 2
    assert {*commands.values[~commands.isnull()]} == {row["command"] for row in few}


ZIPPED = """
study: pairs
command: compare
options: {collective: all_gather, algorithms: ring}
zip: {fabric: ["wdm_ring:ranks=4,wavelengths=1", "crossbar:ranks=4"], size: [1KiB, 1MiB]}
"""


def test_other_columns_may_be_dimensions(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    results = swept(tmp_path, ZIPPED)
    with pytest.raises(UsageError, match=r"two rows have axis_fabric .*, size 1KiB; name further"):
        results.to_xarray()
    dataset = results.to_xarray(["size", "algorithm"])
    assert dataset["algorithm"].values.tolist() == ["ring", "auto"]
    assert dataset["steps"].sel(algorithm="ring").values.tolist() == [3, 3]
    assert dataset["axis_fabric"].dims == ("size", "algorithm")
    with pytest.raises(UsageError, match=r"no column `sise`; did you mean `size`"):
        results.to_xarray(["sise"])


def test_no_dimension_is_a_dataset_of_one_row(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    results = swept(tmp_path, RINGS)
    one = Results(results[:1], [], results.units, names=list(results[0]))
    assert one.to_xarray()["steps"].item() == 3


def test_a_dataset_that_needs_too_much_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xarray")
    results = swept(tmp_path, RINGS)
    monkeypatch.setattr("opticoll.study.results.BYTES_PER_CELL", 2**50)
    with pytest.raises(MemoryLimitError, match="the Dataset"):
        results.to_xarray()


def test_a_dataset_without_its_package_names_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = swept(tmp_path, RINGS)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(UsageError, match="pip install xarray"):
        results.to_xarray()


def test_results_are_an_arrow_table(tmp_path: Path) -> None:
    results = swept(tmp_path, RINGS)
    arrow = pyarrow.table(results)
    assert arrow["time_ps"].to_pylist() == [row["time_ps"] for row in results]
    assert arrow["size"].to_pylist() == SIZES * 4
