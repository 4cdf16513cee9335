"""A real browser without a window, driven by Chromium's own protocol over two pipes."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120.0

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium or google-chrome here")

_QUIET = ("background-networking", "component-update", "sync", "quic", "gpu", "default-apps", "dev-shm-usage")
_OPTIONS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in _QUIET)]
_MIDDLE = """
const it = document.querySelector({selector});
if (!it) return null;
it.scrollIntoView({{ block: "center", inline: "center", behavior: "instant" }});
const box = it.getBoundingClientRect();
const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
const top = document.elementFromPoint(x, y);
return it.contains(top) || top?.contains(it) ? [x, y] : null;
"""


class _Pipes:
    """The protocol: JSON messages that end with zero. Events that arrive before the answer to a command are kept."""

    def __init__(self, to_browser: int, from_browser: int):
        self._to, self._from = to_browser, from_browser
        self._number, self._unread = 0, b""
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        content = json.dumps(message).encode() + b"\0"
        while content:
            content = content[os.write(self._to, content) :]
        while (answer := self.read()).get("id") != message["id"]:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        found: dict[str, Any] = answer["result"]
        return found

    def read(self) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], PATIENCE)
            content = os.read(self._from, 1 << 20) if ready else b""
            assert content, "the browser does not answer"
            self._unread += content
        message, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


class Browser:
    """One window.

    Args:
        pipes: to a browser that has begun.
    """

    def __init__(self, pipes: _Pipes):
        self._pipes = pipes
        target = pipes.ask("Target.createTarget", url="about:blank")["targetId"]
        pipes.session = pipes.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Page", "Runtime", "Log"):
            pipes.ask(f"{name}.enable")

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self._pipes.events = [event for event in self._pipes.events if event["method"] != "Page.loadEventFired"]
        failed = self._pipes.ask("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
        while not any(event["method"] == "Page.loadEventFired" for event in self._pipes.events):
            self._pipes.events.append(self._pipes.read())

    def resize(self, width: int, height: int) -> None:
        self._pipes.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def look(self, **features: str) -> None:
        """Show the page as people with other settings see it, for instance ``prefers_color_scheme="dark"``."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._pipes.ask("Emulation.setEmulatedMedia", features=wanted)

    @contextlib.contextmanager
    def processor_seconds(self) -> Iterator[list[float]]:
        """The processor time of the page's main thread meanwhile: a list of one number, after the block."""
        spent: list[float] = []
        self._pipes.ask("Performance.enable", timeDomain="threadTicks")
        try:
            yield spent
            metrics = self._pipes.ask("Performance.getMetrics")["metrics"]
            spent.append(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))
        finally:
            self._pipes.ask("Performance.disable")

    def run(self, script: str) -> Any:
        """What the body of a function returns in the page; it may wait."""
        expression = f"(async () => {{ {script}\n }})()"
        options = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        said = self._pipes.ask("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in said, f"{script}: {said['exceptionDetails']}"
        return said["result"].get("value")

    def click(self, selector: str) -> None:
        """As a person does: on what is visible, in the middle of it."""
        middle = self.run(_MIDDLE.format(selector=json.dumps(selector)))
        assert middle is not None, f"{selector} must be there, and nothing over it"
        for kind in ("mousePressed", "mouseReleased"):
            self._pipes.ask(
                "Input.dispatchMouseEvent", type=kind, x=middle[0], y=middle[1], button="left", clickCount=1
            )

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
        """Errors and warnings of the console since the last call."""
        self.run("")
        events, self._pipes.events = self._pipes.events, []
        found = []
        for event in events:
            told = event.get("params", {})
            if event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(told["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
                found.append(json.dumps(told["args"]))
        return found

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._pipes.ask("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A window; the browser ends with the block."""
    command = [str(CHROMIUM), *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}"]
    given, to_browser = _pipe()
    from_browser, taken = _pipe()
    places = f'exec "$@" 3</dev/fd/{given} 4>/dev/fd/{taken}'  # where the protocol is read and written
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "-c", places, "sh", *command],
            pass_fds=(given, taken),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(given)
    os.close(taken)
    try:
        yield Browser(_Pipes(to_browser, from_browser))
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            os.close(to_browser)
            os.close(from_browser)


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers have two digits, so that they are none of the protocol's."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]
