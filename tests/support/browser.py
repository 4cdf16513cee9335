"""A real browser without a window, driven by the WebDriver protocol: chromedriver and a few requests of JSON."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120.0

CHROMEDRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    CHROMEDRIVER is None or CHROMIUM is None, reason="there is no chromedriver, or no chromium or google-chrome, here"
)

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of the specification


class Browser:
    """One window.

    Args:
        address: of the session, at chromedriver.
    """

    def __init__(self, address: str):
        self._address = address

    def open(self, url: str) -> None:
        _ask("POST", f"{self._address}/url", {"url": url})

    def resize(self, width: int, height: int) -> None:
        _ask("POST", f"{self._address}/window/rect", {"width": width, "height": height})

    def run(self, script: str) -> Any:
        """What the body of a function returns in the page."""
        return _ask("POST", f"{self._address}/execute/sync", {"script": script, "args": []})

    def click(self, selector: str) -> None:
        """As a person does: on what is visible, in the middle of it."""
        found = _ask("POST", f"{self._address}/element", {"using": "css selector", "value": selector})[_ELEMENT]
        _ask("POST", f"{self._address}/element/{found}/click", {})

    def text(self, selector: str) -> str:
        """What a person can read there."""
        return str(self.run(f"return document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def wait_for(self, script: str, seconds: float = PATIENCE) -> Any:
        """The first value of a script that is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"{script}: {self.text('body')}"
            time.sleep(0.1)
        return value

    def log(self) -> list[str]:
        """Errors and warnings of the console."""
        return [entry["message"] for entry in _ask("POST", f"{self._address}/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(_ask("GET", f"{self._address}/screenshot")))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A window; chromedriver and the browser end with the block."""
    log = folder / "chromedriver.log"
    with log.open("wb") as out:
        process = subprocess.Popen([str(CHROMEDRIVER), "--port=0"], stdout=out, stderr=out)
    try:
        end = time.monotonic() + PATIENCE
        while not (port := re.search(r"on port (\d+)\.", log.read_text("utf-8"))):
            assert process.poll() is None and time.monotonic() < end, log.read_text("utf-8")
            time.sleep(0.05)
        driver = f"http://127.0.0.1:{port[1]}"
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"binary": str(CHROMIUM), "args": arguments}}
        session = _ask("POST", f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        try:
            yield Browser(f"{driver}/session/{session}")
        finally:
            _ask("DELETE", f"{driver}/session/{session}")
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _ask(method: str, url: str, content: object = None) -> Any:
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{method} {url}: {error.read().decode()[:500]}") from None
