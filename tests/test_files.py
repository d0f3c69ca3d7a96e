"""Output files of commands: checked before the work, written whatever fails later."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pytest

import opticoll
from opticoll import plot
from opticoll.commands import compare
from opticoll.outputs.plan_row import PlanRow, plan_row
from support import RING, Run

COMPARE = ("compare", "all_gather", "--fabric", RING, "--algorithms", "ring,optree")


def refuse_to_draw(*_: object) -> None:
    raise plot.PlotError("there is no ink")


def test_a_figure_that_fails_leaves_table_and_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "comparison", refuse_to_draw)
    table = tmp_path / "rows.csv"
    finished = run(*COMPARE, "--figure", tmp_path / "rows.svg", "--csv", table)
    assert finished.code == 2
    assert "optree" in finished.out
    assert [line.split(":")[0] for line in finished.err.splitlines()] == ["opticoll"] * 2
    assert "opticoll: error: there is no ink" in finished.err
    assert len(table.read_text().splitlines()) == 4  # the heading, two algorithms and auto


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "all_gather", "--fabric", RING, "--output", "/dev/full"),
        (*COMPARE, "--csv", "/dev/full"),
    ],
)
def test_an_answer_is_printed_though_its_file_cannot_be_written(
    run: Run, arguments: tuple[str, ...]
) -> None:
    finished = run(*arguments)
    assert finished.code == 2
    assert "verified" in finished.out
    (line,) = finished.err.splitlines()
    assert "/dev/full" in line
    assert "No space left" in line


def test_rows_computed_before_an_error_are_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = plan_row

    def for_rings(plan: opticoll.Plan, *others: object) -> PlanRow:
        if plan.algorithm != "ring":
            raise opticoll.errors.SimulationError("the clock stands still")
        return measure(plan, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("opticoll.outputs.plan_row.plan_row", for_rings)
    table = tmp_path / "rows.csv"
    finished = run(*COMPARE, "--sizes", "1KiB,4KiB", "--csv", table)
    assert (finished.code, finished.out) == (2, "")
    assert "with the 2 rows computed so far" in finished.err
    assert "the clock stands still" in finished.err
    assert [row["size_bytes"] for row in csv.DictReader(table.open())] == ["1024", "4096"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (("--figure", "rows.doc", "--csv", "rows.csv"), ".doc"),
        (("--figure", "nowhere/rows.svg", "--csv", "rows.csv"), "nowhere"),
        (("--figure", "rows.svg", "--csv", "rows.txt"), ".csv"),
    ],
)
def test_files_are_refused_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "compare", None)
    finished = run(*COMPARE, *files)
    assert (finished.code, finished.out) == (2, "")
    assert why in finished.err
    assert not list(tmp_path.iterdir())


def test_a_matplotlib_that_does_not_load_is_found_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "compare", None)
    for name in [name for name in sys.modules if name.startswith("opticoll.plot")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    finished = run(*COMPARE, "--figure", tmp_path / "rows.svg")
    assert finished.code == 2
    assert "matplotlib does not load" in finished.err


def test_the_table_holds_candidates_and_reasons(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    assert run(*COMPARE[:-1], "auto,ring", "--csv", table).code == 0
    auto, ring = csv.DictReader(table.open())
    plan = opticoll.plan("all_gather", RING, "auto", size="4MiB")
    assert auto["reasons"] == "; ".join(plan.reasons)
    assert [name for name, *_ in plan.candidates if name not in auto["candidates"]] == []
    assert (ring["candidates"], ring["reasons"], ring["violations"]) == ("", "", "")


def test_the_figure_shows_the_links_of_the_critical_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow cable to rank 63, over which little goes: 62 other links carry more.
    cables = "+".join(f"{rank}-64@{'1Mb/s' if rank == 63 else '100Gb/s'}" for rank in range(64))
    fabric = f"custom:ranks=64,switches=1,links={cables}"
    plan = opticoll.plan("all_to_all", fabric, "direct")
    outcome = plan.simulate("1MB", link_bin="fitted")
    named = {link for link in outcome.critical_path["bottleneck"] if link is not None}
    shown: list[str | None] = []
    module = sys.modules["opticoll.plot.link_use"]
    draw = module._draw

    def keep(
        figure: object, edges: object, shares: object, places: list[int], names: list[str]
    ) -> None:
        shown.extend(names[place] for place in places)
        draw(figure, edges, shares, places, names)

    monkeypatch.setattr(module, "_draw", keep)
    plot.link_use(plan, outcome, tmp_path / "use.svg")
    assert len(shown) == module.MAX_LINKS
    assert named
    assert {plan.fabric.link_name(link) for link in named} <= set(shown)


def test_a_pipe_is_read_once_and_kept(run: Run, tmp_path: Path) -> None:
    ring = ("all_gather", "--fabric", "torus:dims=4", "--algorithm", "ring")
    plan, trace, rows = (tmp_path / name for name in ("p.plan", "t.goal", "rows.json"))
    assert run("plan", *ring, "--output", plan).code == 0
    assert run("export", *ring, "--output", trace).code == 0
    rows.write_text(run("simulate", plan, "--size", "1KiB", "--json").out)
    page = ("--output", tmp_path / "page.html")
    for file, command, more in (
        (plan, "verify", ()),
        (trace, "replay", ("--fabric", "torus:dims=4")),
        (rows, "report", page),
        (plan, "report", page),
    ):
        reading, writing = os.pipe()
        with os.fdopen(reading), os.fdopen(writing, "wb") as pipe:
            pipe.write(file.read_bytes())
            pipe.close()
            finished = run(command, f"/dev/fd/{reading}", *more)
        assert finished.code == 0, finished.err
