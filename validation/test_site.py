"""The built documentation site: its links lead somewhere, and a browser shows it without errors.

`make docs` builds the site in out/docs.
"""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib.image
import pytest

SITE = Path(__file__).parents[1] / "out" / "docs"
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--window-size=1300,900", "--virtual-time-budget=8000"),
    *("--enable-logging=stderr", "--v=0"),
]
SECONDS = 90
"""Maximum time of a page in a browser."""


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src") and value:
                self.targets.append(value)


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    """Returns all pages of the site except the Rust reference, which `cargo doc` checks itself."""
    files = [
        path for path in SITE.rglob("*.html") if "rust" not in path.relative_to(SITE).parts[:-1]
    ]
    assert len(files) > 30, "run `make docs`"
    return {path: Page(path.read_text(encoding="utf-8")) for path in files}


def broken(page: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Yields the links and pictures of a page that lead nowhere within the site."""
    for target in pages[page].targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        file = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
        if file.is_dir():
            file = file / "index.html"
        anchor = unquote(parts.fragment)
        if not file.is_file() or (anchor and file in pages and anchor not in pages[file].anchors):
            yield target


def test_links_and_anchors_lead_somewhere(pages: dict[Path, Page]) -> None:
    found = {str(page.relative_to(SITE)): list(broken(page, pages)) for page in pages}
    assert {page: targets for page, targets in found.items() if targets} == {}


def test_every_page_can_be_reached(pages: dict[Path, Page]) -> None:
    indices = ("genindex.html", "py-modindex.html", "search.html", "_modules/index.html")
    reached = {SITE / name for name in ("index.html", *indices)}
    waiting = list(reached)
    while waiting:
        page = waiting.pop()
        for target in pages[page].targets:
            file = (page.parent / unquote(urlsplit(target).path)).resolve()
            if file in pages and file not in reached:
                reached.add(file)
                waiting.append(file)
    assert pages.keys() - reached == set()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serves the site and yields its address."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def browse(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the browser with a profile of its own."""
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)


needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")


@needs_browser
@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("index.html", "plans, proves and simulates"),
        ("start.html", "pip install"),
        ("api/classes.html", "uint32"),
        ("notebooks/first-plan.html", "data:image|_images/"),
    ],
)
def test_a_browser_shows_a_page_without_errors(
    page: str, shown: str, address: str, tmp_path: Path
) -> None:
    done = browse(tmp_path, "--dump-dom", f"{address}/{page}")
    assert re.search(shown, done.stdout)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


@needs_browser
def test_the_search_of_the_site_finds_a_page(address: str, tmp_path: Path) -> None:
    done = browse(tmp_path, "--dump-dom", f"{address}/search.html?q=relay_tree")
    results = re.findall(r'<li class="[^"]*"><a href="([^"]*)', done.stdout)
    assert any("relay" in result for result in results), done.stdout[-3000:]
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


@needs_browser
def test_pages_are_light_or_dark_as_the_reader_prefers(address: str, tmp_path: Path) -> None:
    brightness = {}
    for scheme, value in (("dark", 0), ("light", 1)):
        picture = tmp_path / f"{scheme}.png"
        words = (f"--blink-settings=preferredColorScheme={value}", f"--screenshot={picture}")
        browse(tmp_path / scheme, *words, f"{address}/start.html")
        brightness[scheme] = float(matplotlib.image.imread(picture)[..., :3].mean())
    assert brightness["dark"] < 0.3 < 0.8 < brightness["light"], brightness
