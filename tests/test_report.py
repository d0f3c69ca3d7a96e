"""Pages to send round: what they hold, and that every number can be computed again."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.commands.report import COMMAND
from opticoll.errors import UsageError
from opticoll.formats.network_graph import rank_names
from opticoll.formats.table import write_csv
from opticoll.outputs.rows import plain
from opticoll.plot import style
from opticoll.report import document, figures, parts, plan_page, rows_file, table
from support import Run

RING = "wdm_ring:ranks=8,wavelengths=2"
TORUS = "torus:dims=4x2,rate=100Gb/s"
MAX_PAGE_BYTES = 2_000_000
"""Maximum size of the page of a small study: the docs promise a few MB."""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    compared = opticoll.compare("all_gather", [RING, TORUS], "ring,direct", sizes="1KiB..1MiB")
    return [plain(row) for row in compared.rows]


def content(page: str) -> dict[str, Any]:
    """Returns the content of a page."""
    found = re.search(r'<script id="content" type="application/json">(.*?)</script>', page, re.S)
    assert found
    held: dict[str, Any] = json.loads(found[1])
    return held


def timed(algorithm: str, size: int, time_s: float, **more: Any) -> dict[str, Any]:
    return {"algorithm": algorithm, "size_bytes": size, "time_s": time_s, "verified": True} | more


@pytest.mark.parametrize(
    ("compared", "answer"),
    [
        (
            [timed("ring", 1024, 2e-6), timed("tree:k=2", 1024, 1e-6, chosen="tree:k=4")],
            [("Least time", 1e-6), ("Algorithm", "tree:k=4")],
        ),
        (
            [
                *(timed("ring", size, 2e-6) for size in (1024, 4096, 16384)),
                *(timed("tree:k=2", size, size * 1e-9) for size in (1024, 4096, 16384)),
            ],
            [
                ("Least time, 1KiB", "1.024 us by tree:k=2"),
                ("Least time, 4KiB", "2.000 us by ring"),
                ("Least time, 16KiB", "2.000 us by ring"),
            ],
        ),
        (
            [
                *(timed("ring", 2**power, 2e-6) for power in range(8, 15)),
                *(timed("tree:k=2", 2**power, 2**power * 1e-9) for power in range(8, 15)),
            ],
            # 2,048 ns and more are above 2 us.
            [("Least time", ["ring in 4 of 7 cases", "tree in 3"])],
        ),
        # A plan that is wrong wins nothing.
        (
            [timed("ring", 1024, 2e-6), timed("tree", 1024, 1e-6, verified=False)],
            [("Least time", 2e-6), ("Algorithm", "ring")],
        ),
        ([{"ranks": 2, "bytes": 5}, {"ranks": 4, "bytes": 9}], []),
    ],
)
def test_a_part_begins_with_who_has_the_least_time(
    compared: list[dict[str, Any]], answer: list[tuple[str, Any]]
) -> None:
    chosen = {"chosen": "ring"} if any("chosen" in row for row in compared) else {}
    part = parts.rows_part("times", [chosen | row for row in compared])
    assert [(name, value) for name, value, *_ in part.answer] == answer


def test_fabrics_of_one_case_stand_side_by_side() -> None:
    fabrics = ("crossbar:ranks=4,rate=10Gb/s", "torus:dims=2x2,rate=40Gb/s")
    compared = [
        timed(algorithm, 1024, 1e-6 + place, fabric=fabric, injection_bandwidth=place)
        for algorithm in ("ring", "direct")
        for place, fabric in enumerate(fabrics)
    ]
    choice = parts.rows_part("times", compared).content["choice"]
    assert (choice["x"], choice["colour"], choice["kind"]) == ("fabric", "algorithm", "points")


def test_the_columns_of_the_figure_come_first(rows: list[dict[str, Any]]) -> None:
    part = parts.rows_part("times", rows)
    names = [one["name"] for one in part.content["columns"]]
    assert names[:5] == ["algorithm", "fabric", "size_bytes", "time_s", "gap"]


def test_a_browser_shows_the_answer_first_and_prints_all_rows(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    # Two axes; the rate follows from the fabric.
    fabrics = [f"crossbar:ranks={ranks},rate={ranks}Gb/s" for ranks in (2, 4)]
    compared = [
        timed(algorithm, size, size * 1e-9, fabric=fabric)
        for algorithm in ("ring", "direct")
        for size in range(1024, 1064)
        for fabric in fabrics
    ]
    page = document.html("times", [parts.rows_part("times", compared)])
    begun = '<script>dispatchEvent(new Event("beforeprint"));</script></body>'
    (tmp_path / "page.html").write_text(page.replace("</body>", begun), encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    words += ["--disable-background-networking", "--disable-component-update", "--disable-quic"]
    words += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run(
        [chromium, *words, (tmp_path / "page.html").as_uri()], capture_output=True, check=True
    ).stdout.decode()
    parts_of_page = ("Least time", "Figure", "Table", "What was asked")
    places = [shown.index(f">{name}<") for name in parts_of_page]
    assert places == sorted(places)
    assert len(re.findall(r'<tr data-row="', shown)) == len(compared)
    assert 'data-role="x"' in shown
    assert "held_rate" not in shown


def test_a_page_is_one_file_that_fetches_nothing(
    rows: list[dict[str, Any]], tmp_path: Path, run: Run
) -> None:
    source, page = tmp_path / "times.json", tmp_path / "report.html"
    source.write_text(json.dumps(rows))
    plan = tmp_path / "ring.plan"
    opticoll.write_plan(opticoll.plan("all_gather", RING, "ring"), plan)
    shown = run("report", source, plan, "--output", page).out
    assert "36 rows" in shown
    assert "7 slots" in shown
    text = page.read_text(encoding="utf-8")
    assert len(text) < MAX_PAGE_BYTES
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r"(?:src|href)=|@import|url\(", outside)
    assert [part["kind"] for part in content(text)["parts"]] == ["rows", "plan"]


def test_a_page_is_the_same_every_time(rows: list[dict[str, Any]]) -> None:
    first = document.html("Times", [parts.rows_part("times", rows)])
    assert first == document.html("Times", [parts.rows_part("times", rows)])


def test_no_text_of_a_source_ends_the_script_that_holds_it() -> None:
    evil = "</script><script>alert(1)</script>"
    held = [{"algorithm": evil, "time_s": 1.0}, {"algorithm": "b", "time_s": 2.0}]
    page = document.html(evil, [parts.rows_part(evil, held)])
    assert "<script>alert" not in page
    assert content(page)["parts"][0]["title"] == evil


@pytest.mark.parametrize("ending", [".json", ".csv", ".parquet"])
def test_rows_are_the_same_from_every_format(
    ending: str, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    from opticoll import formats

    path = tmp_path / f"rows{ending}"
    if ending == ".json":
        path.write_text(json.dumps(rows))
    else:
        formats.named_format("rows", str(path)).write(rows, path)
    read = rows_file.read(path)
    assert rows_file.command_of(read[0])[0] == "compare"  # type: ignore[index]
    shown = parts.rows_part("rows", read).content
    assert shown == parts.rows_part("rows", rows).content


def test_columns_have_units_meanings_and_gaps_to_bounds(rows: list[dict[str, Any]]) -> None:
    shown = table.shown_table(rows, rows_file.command_of(rows[0]))
    time, gap = shown.named("time_s"), shown.named("gap")
    assert time is not None
    assert gap is not None
    assert (time.unit, time.meaning) == ("s", "Time")
    for row, value in zip(rows, gap.values, strict=True):
        if row["bound_time_s"] is None:
            assert value is None
        else:
            assert value == pytest.approx(row["time_s"] / row["bound_time_s"] - 1)
    assert shown.named("time_ps") is None  # the same as time_s
    asked = [one.name for one in shown.columns if one.asked]
    assert {"algorithm", "fabric", "size_bytes", "injection_bandwidth"} <= set(asked)


def test_options_in_which_fabrics_differ_are_axes() -> None:
    fabrics = [f"{RING},reconfiguration={time}" for time in ("1us", "10us", "100us")]
    compared = opticoll.compare("all_gather", fabrics, "ring", sizes="1KiB")
    shown = parts.rows_part("rows", [plain(row) for row in compared.rows]).content
    assert shown["choice"]["x"] == "reconfiguration"
    (column,) = [one for one in shown["columns"] if one["name"] == "reconfiguration"]
    assert (column["unit"], sorted(set(column["values"]))) == ("s", [1e-6, 1e-5, 1e-4])


ALONE = [
    "plan all_gather --fabric wdm_ring:ranks=8,wavelengths=2 --algorithm ring --policy free"
    " --wavelength first_fit",
    "simulate broadcast --fabric torus:dims=4x2 --root 3 --start step --link-bin 10us",
    "compare all_gather --fabric wdm_ring:ranks=8,wavelengths=2 --fabric torus:dims=4x2"
    " --algorithms ring --sizes 1KiB,4KiB --policy free --start step",
    "compare all_reduce --fabric wdm_ring:ranks=8,wavelengths=4 --algorithms ring --ranks 4,8"
    " --wavelengths 1,2 --policy on_change --wavelength first_fit",
    "bound all_gather --fabric torus:dims=4x2 --size 1KiB",
    "verify all_gather --fabric wdm_ring:ranks=8,wavelengths=2 --algorithm ring",
    "show all_gather --fabric wdm_ring:ranks=8,wavelengths=2 --slot 1",
    "replan all_reduce --fabric wss_grid:rows=3,columns=3 --failed leaving=4 --size 1MiB",
    "train --fabric wdm_ring:ranks=8,wavelengths=2 --fabric torus:dims=4x2 --model resnet50"
    " --batch 8 --no-overlap --policy free --start step --algorithm ring --buckets 4MiB",
    "traffic --fabric torus:dims=4x2 --pattern shift:by=3,uniform --bytes 1KiB,512B --messages 5"
    " --period 2us --jitter 5",
    "traffic --fabric wdm_ladder:rungs=3,hosts=2,wavelengths=4 --simulator burst --source poisson"
    " --offered-load 0.2,0.4 --bursts 1e3",
    "congestion broadcast --fabric wdm_ladder:rungs=3,hosts=2,wavelengths=4 --root 2 --size 1MB"
    " --offered-load 0,0.4 --congestion retry,all_or_nothing --placement natural,best"
    " --replications 2 --ports 2",
    "replay tests/data/ep.A.16.goal.zst --fabric torus:dims=4x4 --cpu-factor 2 --end-overhead 1us"
    " --collective all_reduce=ring --eager 4KiB",
    "tasks examples/tasks.yaml",
]


@pytest.mark.parametrize("line", ALONE, ids=lambda line: line.partition(" --")[0])
def test_the_command_of_every_row_computes_the_row(
    line: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])

    def answer(text: str) -> list[dict[str, Any]]:
        finished = run(*shlex.split(text), "--json")
        assert finished.code == 0, finished.err
        told = json.loads(finished.out)
        return told if isinstance(told, list) else [told]

    rows = answer(line)
    for row in rows:
        again = answer(row["command"].removeprefix("opticoll "))
        # `plan` makes a single row of `compare` and prints more.
        same = [{name: one.get(name) for name in row} for one in again]
        assert row in [{**one, "command": row["command"]} for one in same]
        assert len(again) == 1 or line.startswith("tasks")


def test_an_algorithm_has_its_colour_on_every_page(rows: list[dict[str, Any]]) -> None:
    shown = parts.rows_part("rows", rows).content["columns"]
    (column,) = [one for one in shown if one["name"] == "algorithm"]
    channel = column["channel"]
    for name, colour in zip(channel["domain"], channel["colours"], strict=True):
        assert colour == style.algorithm_look(name)["color"]


@pytest.mark.parametrize("kind", ["lines", "points", "heat", "pareto"])
def test_every_kind_of_figure_is_drawn_as_svg(kind: str, rows: list[dict[str, Any]]) -> None:
    shown = table.shown_table(rows, rows_file.command_of(rows[0]))
    choice: Any = figures.first_choice(shown)
    drawn = figures.svg(figures.specification(shown, {**choice, "kind": kind}))
    assert drawn.startswith("<svg")
    assert drawn.count("<path") > 10


def test_a_figure_says_what_it_holds_and_what_it_leaves_out() -> None:
    ring = "wdm_ring:ranks=8,wavelengths={},reconfiguration={}"
    cells = [
        (ring.format(*one), wavelengths)
        for wavelengths in (2, 4)
        for one in [(wavelengths, "1us"), (wavelengths, "25us")]
    ]
    rows = [
        {"fabric": fabric, "wavelengths": wavelengths, "time_s": 1e-3 * place}
        for place, (fabric, wavelengths) in enumerate([*cells, ("fat_tree:down=8,up=1", None)], 1)
    ]
    shown = table.shown_table(rows, None)
    choice: Any = figures.first_choice(shown)
    choice |= {"x": "wavelengths", "colour": "", "facet": "", "held": {"reconfiguration": 25e-6}}
    said = {
        kind: figures.specification(shown, {**choice, "kind": kind})["title"]["text"]
        for kind in ("lines", "points")
    }
    held = "Reconfiguration: 25.00 us"
    assert said["lines"] == [held, "3 of 5 rows", "dashed across: fabric fat_tree"]
    assert said["points"] == [held, "2 of 5 rows", "left out: fabric fat_tree"]
    assert held in figures.svg(figures.specification(shown, choice))


def test_the_front_of_pareto_has_what_nothing_else_beats() -> None:
    points = [(1, 9), (2, 5), (3, 6), (4, 5), (5, 1)]
    held = [{"steps": steps, "time_s": time} for steps, time in points]
    shown = table.shown_table(held, None)
    choice: dict[str, Any] = {
        "kind": "pareto",
        "x": "steps",
        "y": "time_s",
        "colour": "",
        "facet": "",
    }
    choice |= {"x_log": False, "y_log": False, "held": {}}
    spec = figures.specification(shown, choice)
    spec["layer"] = [
        {
            **spec["layer"][2],
            "encoding": {**spec["layer"][2]["encoding"], "tooltip": {"content": 1}},
        }
    ]
    del spec["layer"][0]["encoding"]["tooltip"]
    marks = re.findall(r'aria-label="Steps: (\d+)', figures.svg(spec))
    assert sorted(map(int, marks)) == [1, 2, 5]


def test_a_plan_says_what_each_message_waits_for() -> None:
    # A chain: each hop waits for the data that the hop before brings.
    plan = opticoll.plan("broadcast", "torus:dims=8,rate=100Gb/s,latency=1us", "chain:segments=1")
    told = plan_page.content(plan, 1024, plan.simulate(1024))
    messages, waits = told["messages"], told["waits"]
    assert told["view"] == "graph"
    for at, kind in enumerate(waits["for"]):
        brought = waits["brought"][at]
        if messages["source"][at] == 0:
            assert brought == -1
        else:
            assert kind == "data"
            assert messages["destination"][brought] == messages["source"][at]
            assert messages["end"][brought] == messages["start"][at]


@pytest.mark.parametrize(
    ("fabric", "view"),
    [
        (RING, "ring"),
        ("wdm_ring:ranks=8,wavelengths=2,converters=full", "ring"),
        (TORUS, "graph"),
        ("crossbar:ranks=8", "graph"),
        ("wss_grid:rows=3,columns=3", "grid"),
        ("lightpath_grid:ranks=8,ports=2", "circle"),
        ("passive_star:ranks=8,wavelengths=4", "circle"),
        ("wdm_torus:dims=3x3,wavelengths=2", "fibres"),
        ("wdm_torus:dims=3x3,wavelengths=2,converters=full", "fibres"),
    ],
)
def test_every_plan_has_a_drawing_with_all_of_its_transfers(fabric: str, view: str) -> None:
    plan = opticoll.plan("all_gather", fabric)
    assert not plan.verify()
    told = plan_page.content(plan, 4096, plan.simulate(4096))
    assert told["view"] == view
    count = len(plan.hop_columns()["transfer"]) or len(plan)
    assert sum(one["messages"] for one in told["slots"]) == count
    assert len(told["messages"]["source"]) == count == len(told["waits"]["for"])
    assert told["messages"]["slot"] == sorted(told["messages"]["slot"])
    assert all(
        start <= end
        for start, end in zip(told["messages"]["start"], told["messages"]["end"], strict=True)
    )


def test_each_transfer_on_fibres_has_a_lightpath_with_its_route() -> None:
    plan = opticoll.plan("all_gather", "nsfnet:wavelengths=8", "direct:order=at_once")
    told = plan_page.content(plan, 4096, plan.simulate(4096))
    fibres, messages = told["fibres"], told["messages"]
    assert len(fibres["of"]) == len(plan) == len(messages["source"])
    assert len(fibres["lines"]) == len(fibres["routes"])
    assert len(fibres["cables"]) == 21
    for at, path in enumerate(fibres["of"]):
        first, last = (fibres["names"][fibres["routes"][path][end]] for end in (0, -1))
        ranks = rank_names(plan.fabric)
        assert first.startswith(f"{ranks[messages['source'][at]]} -> ")
        assert last.endswith(f" -> {ranks[messages['destination'][at]]}")
        (line,) = fibres["lines"][path]
        for end, rank in (
            (line[0], messages["source"][at]),
            (line[-1], messages["destination"][at]),
        ):
            place = fibres["places"][rank]
            assert math.dist(end, place) == pytest.approx(fibres["radius"], abs=1)


def test_a_large_plan_is_cut_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_page, "MAX_TRANSFERS", 20)
    plan = opticoll.plan("all_gather", RING, "ring")
    part = parts.plan_part("ring", plan, "1KiB", {})
    assert len(part.content["slots"]) == 2
    assert "first 2 of 7 slots" in part.notes[0]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("none.json", None, "there is no file"),
        ("bad.json", "{", "not valid JSON"),
        ("empty.json", "[]", "holds no rows"),
        ("list.json", "[1, 2]", "holds no rows"),
        ("empty.csv", "", "holds no rows"),
        ("bad.parquet", "no table", "cannot read"),
        ("bad.plan", "no plan", "plan"),
    ],
)
def test_a_source_that_cannot_be_read_is_named(
    name: str, text: str | None, says: str, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    page = tmp_path / "page.html"
    finished = run("report", path, "--output", page)
    assert (finished.code, finished.out) == (2, "")
    assert says in finished.err
    assert name in finished.err
    assert not page.exists()


def test_a_page_needs_a_file(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "rows.json"
    source.write_text('[{"a": 1}]')
    finished = run("report", source)
    assert (finished.code, "--output is missing" in finished.err) == (2, True)


def test_a_page_without_its_package_leaves_nothing_behind(
    rows: list[dict[str, Any]], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    words = ("--output", tmp_path / "page.html", "--figures", tmp_path / "figures")
    finished = run("report", "missing.json", *words)
    assert (finished.code, "pip install 'vl-convert-python" in finished.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_figures_for_papers_are_written(
    rows: list[dict[str, Any]], tmp_path: Path, run: Run
) -> None:
    source = tmp_path / "times.json"
    source.write_text(json.dumps(rows))
    folder = tmp_path / "figures"
    words = ("--output", tmp_path / "page.html", "--figures", folder)
    finished = run("report", source, *words)
    assert finished.code == 0
    assert [path.name for path in folder.iterdir()] == ["times.svg"]
    assert "times.svg" in finished.err


def test_rows_of_nobody_known_are_shown_with_units_by_their_names() -> None:
    held = [
        {"kind": "a", "wait_s": 0.5, "sent_bytes": 3},
        {"kind": "b", "wait_s": 1.5, "sent_bytes": 9},
    ]
    shown = table.shown_table(held, rows_file.command_of(held[0]))
    assert {one.name: one.unit for one in shown.columns} == {
        "kind": "",
        "wait_s": "s",
        "sent_bytes": "B",
    }


def test_a_store_of_studies_has_a_part_for_each_study(tmp_path: Path, run: Run) -> None:
    study, store, page = (tmp_path / name for name in ("study.yaml", "s.sqlite", "page.html"))
    study.write_text(
        "study: rings\ncommand: simulate\n"
        "options: {collective: all_gather, fabric: wdm_ring, algorithm: ring, size: 4KiB}\n"
        "grid: {fabric.ranks: [4, 8], fabric.wavelengths: [1, 2, 0]}\n"
    )
    run("sweep", study, "--store", store)
    assert "4 rows" in run("report", store, "--output", page).out
    (part,) = content(page.read_text(encoding="utf-8"))["parts"]
    assert part["title"] == "rings"
    assert any("2 points failed" in note for note in part["notes"])
    words = [part["commands"]["words"][place] for place in part["commands"]["places"][3]]
    out = run(*shlex.split(" ".join(words))[1:], "--json").out
    (time,) = [one for one in part["columns"] if one["name"] == "time_s"]
    assert json.loads(out)["time_s"] == pytest.approx(time["values"][3], rel=1e-9)


def test_settings_time_the_plans_whose_simulators_know_them(tmp_path: Path, run: Run) -> None:
    for name, fabric in (("ring", RING), ("torus", TORUS)):
        opticoll.write_plan(opticoll.plan("all_gather", fabric, "ring"), tmp_path / f"{name}.plan")
    page = tmp_path / "page.html"
    plans = (tmp_path / "ring.plan", tmp_path / "torus.plan")
    settings = ("--policy", "free", "--size", "1KiB")
    assert run("report", *plans, *settings, "--output", page).code == 0
    ring, torus = content(page.read_text(encoding="utf-8"))["parts"]
    assert "--policy free" in ring["asked"][0]
    assert "--policy" not in torus["asked"][0]


def test_a_relay_waits_for_the_hop_before() -> None:
    plan = opticoll.plan("all_to_all", "wss_grid:rows=3,columns=3", "direct")
    hops = len(plan.hop_columns()["transfer"])
    assert hops > len(plan)
    told = plan_page.content(plan, 4096, plan.simulate(4096))
    messages, brought = told["messages"], told["waits"]["brought"]
    relays = [at for at, before in enumerate(brought) if before >= 0]
    assert len(relays) == hops - len(plan)
    for at in relays:
        assert messages["destination"][brought[at]] == messages["source"][at]
        assert messages["slot"][brought[at]] < messages["slot"][at]


def test_a_column_of_any_name_is_drawn() -> None:
    name = "a'] + alert(1) + datum['b.c[0]"
    held = [{name: value, "time_s": 1.0 / value} for value in (1, 2, 5)]
    shown = table.shown_table(held, None)
    choice: dict[str, Any] = {"kind": "lines", "x": name, "y": "time_s", "colour": "", "facet": ""}
    choice |= {"x_log": False, "y_log": True, "held": {}}
    drawn = figures.svg(figures.specification(shown, choice))
    assert drawn.count('aria-roledescription="point"') == 3


def test_the_example_of_the_command_has_a_page() -> None:
    assert COMMAND.example.endswith("--output report.html")


def test_tables_within_rows_are_shown_with_their_units(run: Run) -> None:
    line = "replay tests/data/ep.A.16.goal.zst --fabric crossbar:ranks=16 --json"
    row = json.loads(run(*line.replace("tests", str(Path(__file__).parent)).split()).out)
    told = {one["heading"]: one for one in parts.rows_part("replay", [row]).content["tables"]}
    assert {"Per call", "Per rank"} <= told.keys()
    calls = told["Per call"]
    assert ["total_s", "Total", "s"] in [list(one) for one in calls["columns"]]
    assert [len(rows) for rows in calls["rows"]] == [len(row["per_call"])]
    assert parts.rows_part("replay", [{**row, "per_call": json.dumps(row["per_call"])}]).content[
        "tables"
    ] == list(told.values())


def test_tables_within_rows_stay_within_the_size_of_a_page(
    rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(
        one["heading"] == "Candidates" for one in parts.rows_part("", rows).content["tables"]
    )
    monkeypatch.setattr(parts, "MAX_NESTED_ROWS", 3)
    assert parts.rows_part("", rows).content["tables"] == []


BESIDE = """
study: beside
command: simulate
options: {collective: all_gather, algorithm: ring}
points:
  - {fabric: "wdm_ring:ranks=8,wavelengths=2", policy: [every_step, on_change]}
  - {fabric: "fat_tree:down=4x2,up=1x2"}
grid: {size: [1KiB, 1MiB]}
"""


def test_a_fabric_without_an_option_stays_on_the_figure(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(BESIDE)
    opticoll.sweep(tmp_path / "study.yaml", jobs=1)
    held = opticoll.results(tmp_path / "study.sqlite")
    part = parts.results_part("beside", held)
    choice = part.content["choice"]
    assert choice["held"]["policy"] == "on_change"
    assert part.figure is not None
    assert len(part.figure["data"]["values"]) == 4
    rows = [{key: cell for key, cell in plain(row).items() if key != "size"} for row in held]
    shown = table.shown_table(rows, ("simulate", rows_file.kinds()["plan"][0]))
    chosen = {**choice, "held": {}, "facet": "policy"}
    panels = figures.specification(shown, chosen)["data"]["values"]
    assert sorted(one["policy"] for one in panels) == ["every_step"] * 4 + ["on_change"] * 4
    both = figures.specification(shown, {**choice, "held": {}, "facet": ""})
    dash = both["layer"][0]["encoding"]["strokeDash"]
    assert (dash["field"], len({*map(tuple, dash["scale"]["range"])})) == ("policy", 2)
    assert both["encoding"]["color"]["field"] == "fabric"


@pytest.mark.parametrize(
    ("ending", "begins"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_results_are_drawn_in_the_format_of_their_file(
    ending: str, begins: bytes, tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(BESIDE)
    opticoll.sweep(tmp_path / "study.yaml", jobs=1)
    held = opticoll.results(tmp_path / "study.sqlite")
    held.plot(tmp_path / f"times{ending}")
    assert (tmp_path / f"times{ending}").read_bytes().startswith(begins)
    with pytest.raises(UsageError, match=r"ends in one of \.svg"):
        held.plot(tmp_path / "times.foo")
    assert not (tmp_path / "times.foo").exists()


def test_a_page_of_a_shared_store_has_each_study_with_its_own_file_and_sweeps(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, other, store, page = (
        tmp_path / name for name in ("study.yaml", "another.yaml", "s.sqlite", "page.html")
    )
    study.write_text(f"# Who wins?{BESIDE}where: size <= 1MiB\n")
    other.write_text(BESIDE.replace("study: beside", "study: alone"))
    for one in (study, other):
        monkeypatch.setattr(sys, "argv", ["opticoll", "sweep", str(one)])
        assert run("sweep", one, "--store", store).code == 0
    assert run("report", store, "--output", page).code == 0
    first, second = content(page.read_text(encoding="utf-8"))["parts"]
    assert (first["title"], second["title"]) == ("beside", "alone")
    assert first["source"] == study.read_text()
    assert (len(first["asked"]), len(second["asked"])) == (1, 1)
    assert "another.yaml" in second["asked"][0]


def test_what_a_search_found_is_on_the_page_with_its_values(tmp_path: Path, run: Run) -> None:
    study, page = tmp_path / "study.yaml", tmp_path / "page.html"
    study.write_text(
        "study: cheap\ncommand: simulate\n"
        "options: {collective: all_gather, algorithm: ring_bidirectional, policy: on_change,"
        ' fabric: "wdm_ring:ranks=8"}\n'
        "grid: {fabric.wavelengths: [1, 2, 4], size: [1MiB, 16MiB]}\n"
        "optimise: {cheapest: fabric.wavelengths, meets: time_s <= 1s, for_each: [size]}\n"
    )
    finished = run("sweep", study)
    assert finished.code == 0
    run("report", tmp_path / "study.sqlite", "--output", page)
    (part,) = content(page.read_text(encoding="utf-8"))["parts"]
    found = [value for name, value, *_ in part["answer"] if name == "Found"]
    assert len(found) == 2
    for told, size in zip(found, ("1MiB", "16MiB"), strict=True):
        assert told.startswith(f"cheapest for size = {size}: fabric.wavelengths = 1, time_s = ")
        assert told in finished.out


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_results_written_as_rows_have_the_page_of_their_study(
    ending: str, tmp_path: Path, run: Run
) -> None:
    study, store, page = (tmp_path / name for name in ("study.yaml", "s.sqlite", "page.html"))
    # A fat tree has no policy: half of its points fail.
    study.write_text(BESIDE.replace('up=1x2"', 'up=1x2", policy: [every_step]'))
    finished = run("sweep", study, "--store", store)
    assert (finished.code, "2 points failed" in finished.err) == (1, True)
    rows = tmp_path / f"rows{ending}"
    if ending == ".json":
        rows.write_text(run("results", store, "--json").out)
    else:
        run("results", store, "--csv", rows)
    assert run("report", rows, "--output", page).code == 0
    (part,) = content(page.read_text(encoding="utf-8"))["parts"]
    assert part["title"] == "beside"
    *warnings, failure = part["notes"]
    assert all(one.startswith("wdm_ring states no latency") for one in warnings)
    assert failure.startswith("2 points failed; the first: the fluid simulator")
    facts = {name: value for name, value, *_ in part["facts"]}
    assert facts["Fabric"] == "wdm_ring"
    run("report", store, "--output", page)
    (of_store,) = content(page.read_text(encoding="utf-8"))["parts"]
    assert part["columns"] == of_store["columns"]
    assert part["commands"] == of_store["commands"]


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", "\tx", "'x", "-", "-1.5", "a=b"])
def test_a_name_is_no_formula_in_csv_and_reads_as_it_was(tmp_path: Path, name: str) -> None:
    path = tmp_path / "rows.csv"
    write_csv([{name: name, "names": [name, "b"], "negative": -1.5}], path)
    heading, values = csv.reader(path.read_text().splitlines())
    assert values[2] == "-1.5"
    # Spreadsheets read these beginnings as formulas, except numbers and a single dash.
    for cell in (heading[0], values[0], values[1]):
        assert cell == "-" or cell[0] not in "=+-@\t\r"
    (row,) = rows_file.read(path)
    assert row["negative"] == -1.5
    assert row["names"] == f"{name}; b"


def test_each_panel_has_an_axis_of_its_own_and_room_for_its_labels(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        "study: three\ncommand: simulate\n"
        "options: {collective: all_gather, fabric: 'wdm_ring:ranks=8,wavelengths=2'}\n"
        "grid: {policy: [free, every_step, on_change], algorithm: [ring, optree], "
        "size: [64KiB, 1MiB, 16MiB]}\n"
    )
    opticoll.sweep(tmp_path / "study.yaml", jobs=1)
    figure: Any = parts.results_part("three", opticoll.results(tmp_path / "study.sqlite")).figure
    drawn = figures.svg(figure)
    assert drawn.count(">16 MiB<") == 3
    assert re.search(r'text-anchor="end"[^>]*>16 MiB<', drawn)
