"""A headless Chromium, driven over a pipe by the DevTools protocol; nothing to install.

with Browser(folder) as browser:
    page = browser.open(path)
    page.run("document.title")
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--remote-debugging-pipe", "--disable-dev-shm-usage"),
]
SECONDS = 60
"""Maximum time of an answer of the browser."""


class Browser:
    """A browser with a profile of its own, ended with the block that it is used in."""

    def __init__(self, folder: Path) -> None:
        asked_by, self._ask = os.pipe()
        self._told, told_by = os.pipe()

        def place() -> None:
            # The browser reads from 3 and writes to 4; neither may be overwritten too early.
            copies = os.dup(asked_by), os.dup(told_by)
            for copy, number in zip(copies, (3, 4), strict=True):
                os.dup2(copy, number)

        self._process = subprocess.Popen(
            [str(PROGRAM), *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asked_by)
        os.close(told_by)
        os.set_blocking(self._told, False)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ask)
        os.close(self._told)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns the browser's answer."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            asked["sessionId"] = session
        os.write(self._ask, json.dumps(asked).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for message in self._messages():
                if message.get("id") == self._number:
                    if "error" in message:
                        raise RuntimeError(f"{method}: {message['error']}")
                    answer: dict[str, Any] = message["result"]
                    return answer
                self.events.append(message)
        raise TimeoutError(method)

    def _messages(self) -> list[dict[str, Any]]:
        try:
            self._rest += os.read(self._told, 1 << 20)
        except BlockingIOError:
            time.sleep(0.01)
        *whole, self._rest = self._rest.split(b"\0")
        return [json.loads(one) for one in whole]

    def open(self, path: Path, width: int = 1280, height: int = 900) -> Page:
        """Opens a page from a file and waits until the page is ready."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.call("Page.navigate", url=path.resolve().as_uri())
        page.wait("document.documentElement?.dataset.ready === 'yes'")
        return page


class Page:
    """A page in the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol for this page and returns the browser's answer."""
        return self._browser.call(method, self._session, **parameters)

    def run(self, script: str) -> Any:
        """Evaluates an expression in the page; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, script: str, of: Callable[[Any], bool] = bool) -> Any:
        """Evaluates an expression until its value satisfies `of`."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            value = self.run(script)
            if of(value):
                return value
            time.sleep(0.05)
        raise TimeoutError(script)

    def resize(self, width: int, height: int) -> None:
        """Gives the page a size in pixels; narrow pages count as phones."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def press(self, key: str, code: int) -> None:
        """Press a key, such as `ArrowRight` (39), `Tab` (9) or `Enter` (13)."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )

    def errors(self) -> list[str]:
        """Returns the errors and warnings of the console."""
        self.run("1")  # events up to now
        said = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            about = event.get("params", {})
            method = event.get("method")
            if method == "Runtime.exceptionThrown":
                said.append(about["exceptionDetails"]["exception"]["description"])
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                said.append(about["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
                said.append(str(about["args"]))
        return said

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Takes a picture of the page."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(picture))

    def pdf(self, path: Path) -> None:
        """Prints the page as PDF."""
        printed = self.call("Page.printToPDF", printBackground=True)["data"]
        path.write_bytes(base64.b64decode(printed))
