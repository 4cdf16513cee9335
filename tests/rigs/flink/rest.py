"""Flink's REST interface: which jobs run, how often they were started again, and their savepoints."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

PATIENCE = 600.0
"""Seconds until something that does not come is given up; workers take minutes to start on a busy machine."""

ENDS = ("FAILED", "CANCELED", "FINISHED", "SUSPENDED")
"""States of a job that runs no more."""


class Rest:
    """The interface of one cluster.

    Args:
        url: such as http://localhost:8081.
    """

    def __init__(self, url: str):
        self._url = url

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return urlsplit(self._url).netloc

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """The answer to GET, or to POST if there is a body, or to another method; raises what urllib raises."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def wait(self, what: str, look: Callable[[], T | None]) -> T:
        """Look until there is something; a JobManager that is away, or not ready, counts as nothing.

        Raises:
            RuntimeError: it takes too long.
        """
        end, last = time.monotonic() + PATIENCE, "nothing"
        while time.monotonic() < end:
            try:
                found = look()
                if found is not None:
                    return found
            except OSError as error:
                last = str(error)
            time.sleep(0.5)
        raise RuntimeError(f"{what} must come within {PATIENCE:.0f} s, got {last}")

    def wait_for_slots(self, number: int) -> None:
        """Wait until the task managers offer so many slots."""
        self.wait(f"{number} slots", lambda: self.ask("/overview")["slots-total"] == number or None)

    def jobs(self) -> list[str]:
        """Ids of the jobs that run or are being started again, in the order of their start."""
        found = [job for job in self.ask("/jobs/overview")["jobs"] if job["end-time"] < 0]
        return [job["jid"] for job in sorted(found, key=lambda job: job["start-time"])]

    def ended(self, job: str) -> bool:
        """Whether a job runs no more; of one whose JobManager is away nobody knows."""
        with contextlib.suppress(OSError):
            return self.state(job) in ENDS
        return False

    def state(self, job: str) -> str:
        """Of a job, such as RUNNING."""
        return str(self.ask(f"/jobs/{job}")["state"])

    def checkpoints(self, job: str) -> dict[str, Any]:
        """What is known of the checkpoints of a job."""
        return dict(self.ask(f"/jobs/{job}/checkpoints"))

    def stop_with_savepoint(self, job: str) -> str:
        """Stop a job once its state is saved; returns the savepoint's path.

        Raises:
            RuntimeError: Flink could not do it, or it takes too long.
        """
        trigger = self.ask(f"/jobs/{job}/stop", {"drain": False})["request-id"]

        def look() -> Any:
            answer = self.ask(f"/jobs/{job}/savepoints/{trigger}")
            return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

        done = self.wait("a savepoint", look)
        if "location" not in done:
            raise RuntimeError(f"job {job} must stop with a savepoint, got {done['failure-cause']['stack-trace']}")
        return str(done["location"])

    def cancel(self, job: str) -> str:
        """Cancel a job; returns the path of its last checkpoint, which is kept if the job's settings say so.

        Raises:
            RuntimeError: it takes too long.
        """
        self.ask(f"/jobs/{job}?mode=cancel", method="PATCH")
        self.wait("the end of a job", lambda: self.ended(job) or None)
        return str(self.checkpoints(job)["latest"]["completed"]["external_path"])
