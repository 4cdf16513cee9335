"""``uldp workers``: its options, and that the pool which it serves has them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.jobs import workers
from uldp_transforms.jobs.engines import worker_pool
from uldp_transforms.ldp import SpecError


def test_without_options_a_pool_listens_on_its_usual_port() -> None:
    found = workers.configure([])
    assert (found.address, found.start_timeout, found.log_dir) == ("localhost:50000", 60_000, None)


def test_a_folder_of_logs_is_made_and_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers may be started in another folder."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert workers.configure(["--log_dir", "logs/own"]).log_dir == tmp_path / "logs/own"
    assert (tmp_path / "logs/own").is_dir()


@pytest.mark.parametrize("address", ["here", "here:", "here:123456", "a b:1", ":1", "here:x"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(SpecError, match=rf"^--address must be HOST:PORT, got '{address}'$"):
        workers.configure(["--address", address])
    assert workers.configure(["--address", "here:12345"]).address == "here:12345"


def test_no_time_is_no_time_to_start() -> None:
    assert workers.configure(["--start_timeout", "1ms"]).start_timeout == 1
    with pytest.raises(SpecError, match=r"^--start_timeout must be above 0, got 0$"):
        workers.configure(["--start_timeout", "0s"])


def test_the_pool_has_the_options_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is served until a signal, and then the process ends with exit code 0."""
    seen: list[Any] = []
    serve, stop = worker_pool.served, threading.Event()
    stop.set()

    @contextlib.contextmanager
    def served(pool: Any, address: str) -> Iterator[str]:
        seen.extend((pool, address))
        with serve(pool, address) as found:
            yield found

    monkeypatch.setattr(worker_pool, "served", served)
    monkeypatch.setattr(workers, "stopped_by_signals", lambda: contextlib.nullcontext(stop))
    monkeypatch.setattr(workers, "end_now", seen.append)
    workers._job(workers.Workers(address="localhost:0", start_timeout=1_500, log_dir=tmp_path))
    pool, address, code = seen
    assert (pool._seconds, pool._folder, address, code) == (1.5, tmp_path, "localhost:0", 0)
    said = capsys.readouterr().out
    assert said.startswith("workers: listening at localhost:") and not said.endswith(":0\n")
