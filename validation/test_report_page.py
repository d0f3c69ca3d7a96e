"""Pages of `opticoll report` in a browser: they open from a file, and do what they promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PROGRAM, Browser, Page

import opticoll
from opticoll.outputs.rows import plain
from opticoll.report import document, parts

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here")

RING = "wdm_ring:ranks=8,wavelengths=2"
TORUS = "torus:dims=4x2,rate=100Gb/s"
PHONE = 375
"""Width of a phone in pixels."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, Path]:
    """Writes a page of each kind."""
    compared = opticoll.compare("all_gather", [RING, TORUS], "ring,direct", sizes="1KiB..1MiB")
    training = opticoll.train("resnet50", RING, batch=8, algorithm="ring")
    made = {
        "rows": parts.rows_part("Times", [plain(row) for row in compared.rows]),
        "ring": parts.plan_part("A ring", opticoll.plan("all_gather", RING, "optree"), "1MiB", {}),
        "graph": parts.plan_part(
            "A torus", opticoll.plan("all_reduce", TORUS, "recursive_doubling"), "1MiB", {}
        ),
        "star": parts.plan_part(
            "A star", opticoll.plan("all_gather", "passive_star:ranks=8,wavelengths=4"), "1MiB", {}
        ),
        "grid": parts.plan_part(
            "A grid", opticoll.plan("all_to_all", "wss_grid:rows=3,columns=4", "direct"), "1MiB", {}
        ),
        "training": parts.training_part("A training", plain(training)),
    }
    for name, part in made.items():
        document.write(name, [part], folder / f"{name}.html")
    document.write("all", list(made.values()), folder / "all.html")
    return {path.stem: path for path in folder.glob("*.html")}


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with Browser(folder / "profile") as opened:
        yield opened


def drawn(page: Page, least: int = 1) -> None:
    """Waits for figures."""
    page.wait(f"document.querySelectorAll('.figure .marks').length >= {least}")


def cells(page: Page, column: int) -> list[str]:
    """Returns the cells of a column of the table that are shown."""
    script = f"[...document.querySelectorAll('tr[data-row]')].map(r => r.cells[{column}].innerText)"
    told: list[str] = page.run(script)
    return told


def place(page: Page, name: str) -> int:
    """Returns the number of the column that a button sorts."""
    found: int = page.run(
        f"[...document.querySelectorAll('thead tr:first-child th')].findIndex("
        f"one => one.querySelector('[data-sort=\"{name}\"]'))"
    )
    return found


@pytest.mark.parametrize("name", ["rows", "ring", "graph", "grid", "star", "training", "all"])
@pytest.mark.parametrize("width", [1280, PHONE])
def test_a_page_opens_from_a_file_without_errors(
    name: str, width: int, pages: dict[str, Path], browser: Browser
) -> None:
    page = browser.open(pages[name], width)
    drawn(page)
    assert page.errors() == []
    assert page.run("document.documentElement.scrollWidth") <= width
    fetched = "performance.getEntriesByType('resource').map(one => one.name)"
    assert [one for one in page.run(fetched) if not one.startswith(("data:", "blob:"))] == []


def test_a_filter_leaves_the_rows_that_pass(pages: dict[str, Path], browser: Browser) -> None:
    page = browser.open(pages["rows"])
    before = len(cells(page, 1))
    page.run("document.querySelector('[data-filter=algorithm]').focus()")
    page.call("Input.insertText", text="ring")
    kept = cells(page, place(page, "algorithm"))
    assert 0 < len(kept) < before
    assert all("ring" in one for one in kept)
    page.run("document.querySelector('[data-filter=size_bytes]').focus()")
    page.call("Input.insertText", text=">=64KiB")
    assert set(cells(page, place(page, "size_bytes"))) == {"64 KiB", "256 KiB", "1 MiB"} & set(
        cells(page, place(page, "size_bytes"))
    )
    page.call("Input.insertText", text="x")
    assert page.run("document.querySelector('[data-filter=size_bytes]').ariaInvalid") == "true"


def test_a_heading_sorts_by_number_not_by_text(pages: dict[str, Path], browser: Browser) -> None:
    page = browser.open(pages["rows"])
    held = json.loads(page.run("document.getElementById('content').textContent"))["parts"][0]
    times = next(one for one in held["columns"] if one["name"] == "time_s")["values"]
    shown = "[...document.querySelectorAll('tr[data-row]')].map(r => Number(r.dataset.row))"
    click = "document.querySelector('[data-sort=time_s]').click()"
    for order in (sorted(times), sorted(times, reverse=True)):
        page.run(click)
        assert [times[row] for row in page.run(shown)] == order


def test_details_of_a_row_have_the_command_that_computes_it(
    pages: dict[str, Path], browser: Browser
) -> None:
    page = browser.open(pages["rows"])
    page.run("document.querySelector('tr[data-row] button').focus()")
    page.press("Enter", 13)
    text = page.run("document.querySelector('tr.detail code').innerText")
    assert text.startswith("opticoll plan all_gather --fabric wdm_ring:")


def test_details_of_a_row_have_the_tables_within_it(
    pages: dict[str, Path], browser: Browser
) -> None:
    page = browser.open(pages["rows"])
    page.run("document.querySelector('[data-filter=algorithm]').focus()")
    page.call("Input.insertText", text="auto")
    page.run("document.querySelector('tr[data-row] button').click()")
    page.run("document.querySelector('tr.detail details.nested summary').click()")
    assert page.run("document.querySelector('details.nested summary').innerText").startswith(
        "Candidates"
    )
    assert page.run("document.querySelectorAll('details.nested tbody tr').length") > 2
    assert page.run("document.querySelector('details.nested').open")
    assert page.errors() == []


def test_a_reader_chooses_axes_and_kinds(pages: dict[str, Path], browser: Browser) -> None:
    page = browser.open(pages["rows"])
    drawn(page)
    for kind in ("points", "heat", "pareto", "lines"):
        page.run(
            "{const s = document.querySelector('[data-role=kind] select');"
            f"s.value = '{kind}'; s.dispatchEvent(new Event('change'));}}"
        )
        mark = {"heat": "rect", "lines": "line"}.get(kind, "symbol")
        page.wait(f"document.querySelectorAll('.figure .mark-{mark} path').length > 0")
    page.run(
        "{const s = document.querySelector('[data-role=y] select');"
        "s.value = 'steps'; s.dispatchEvent(new Event('change'));}"
    )
    page.wait("document.querySelector('.figure svg').textContent.includes('Steps')")
    assert page.errors() == []


def test_a_click_on_a_mark_opens_its_row(pages: dict[str, Path], browser: Browser) -> None:
    page = browser.open(pages["rows"])
    drawn(page)
    page.wait("document.querySelectorAll('.figure .mark-symbol path').length > 3")
    page.run("document.querySelector('.figure').scrollIntoView()")
    box = page.run(
        "{const b = document.querySelector('.figure .mark-symbol path').getBoundingClientRect();"
        "[b.x + b.width / 2, b.y + b.height / 2]}"
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        page.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=box[0],
            y=box[1],
            button="none" if kind == "mouseMoved" else "left",
            clickCount=0 if kind == "mouseMoved" else 1,
        )
        if kind == "mouseMoved":
            page.wait("!document.getElementById('hover').hidden")
    page.wait("document.querySelectorAll('tr.detail').length === 1")


@pytest.mark.parametrize("name", ["ring", "graph", "grid", "star"])
def test_stepping_through_a_plan_changes_the_drawing(
    name: str, pages: dict[str, Path], browser: Browser
) -> None:
    page = browser.open(pages[name])
    stage = "document.querySelector('.stage svg').innerHTML"
    said = "document.querySelector('.slot').innerText"
    seen, words = [page.run(stage)], [page.run(said)]
    page.run("document.querySelector('input[type=range]').focus()")
    for _ in range(2):
        page.press("ArrowRight", 39)
        seen.append(page.run(stage))
        words.append(page.run(said))
    assert len(set(seen)) == 3
    assert len(set(words)) == 3
    page.press("ArrowLeft", 37)
    assert page.run(said) == words[1]
    page.run("document.querySelector('[aria-label^=\"The next\"]').click()")
    assert page.run(said) == words[2]


def test_everything_is_reached_by_the_tab_key(pages: dict[str, Path], browser: Browser) -> None:
    page = browser.open(pages["all"])
    drawn(page)
    reached = set()
    for _ in range(60):
        page.press("Tab", 9)
        reached.add(page.run("document.activeElement.tagName + document.activeElement.type"))
    assert {"Aundefined", "BUTTONbutton", "SELECTselect-one", "INPUTsearch"} <= {
        one.replace("A", "Aundefined") if one == "A" else one for one in reached
    }


def test_a_page_prints_without_controls(pages: dict[str, Path], browser: Browser) -> None:
    page = browser.open(pages["rows"])
    drawn(page)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.run("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert page.run("getComputedStyle(document.querySelector('.figure svg')).display") != "none"
