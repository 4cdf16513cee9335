"""The main job on a Flink of several processes: lost machines, and the next version; ``make flink`` fetches it.

What needs no Flink: what its REST interface is asked, and each sentence about what does not come.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.rigs.flink import cached, faults, kafka_rows, rest, stream, trial, upgrade
from tests.rigs.flink.launched import launch
from tests.rigs.flink.processes import free_port
from tests.rigs.flink.standalone import Standalone

needs_flink = pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing()))


@pytest.mark.slow
@needs_flink
def test_lost_machines_cost_no_report(tmp_path: Path) -> None:
    """``run`` raises unless all counts are exact."""
    said = faults.run(tmp_path, rate=300, seconds=100)
    assert "taskmanager-1 lost: " in said
    assert "jobmanager lost: " in said


@pytest.mark.slow
@needs_flink
def test_the_next_version_goes_on_with_the_state(tmp_path: Path) -> None:
    """``run`` raises unless all counts are exact, those of the collection that came with the next version too."""
    said = upgrade.run(tmp_path, rate=300, seconds=60)
    assert all(f"{name}: " in said for name in ("words", "diagnoses", "places"))


# ---------------------------------------------------------------------- without Flink


ANSWERS = {
    "/jobs/overview": {
        "jobs": [
            {"jid": "later", "start-time": 2, "end-time": -1},
            {"jid": "over", "start-time": 0, "end-time": 9},
            {"jid": "first", "start-time": 1, "end-time": -1},
        ]
    },
    "/jobs/first": {"state": "RUNNING"},
    "/jobs/over": {"state": "FAILED"},
    "/jobs/over?mode=cancel": {},
    "/jobs/over/checkpoints": {"latest": {"completed": {"external_path": "file:/c"}}},
    "/jobs/first/stop": {"request-id": "1"},
    "/jobs/first/savepoints/1": {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s"}},
    "/jobs/later/stop": {"request-id": "2"},
    "/jobs/later/savepoints/2": {
        "status": {"id": "COMPLETED"},
        "operation": {"failure-cause": {"stack-trace": "no room"}},
    },
}


class _Flink(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = json.dumps(ANSWERS.get(self.path)).encode()
        self.send_response(200 if self.path in ANSWERS else 404)
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PATCH = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def flink() -> Iterator[rest.Rest]:
    server = HTTPServer(("127.0.0.1", 0), _Flink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield rest.Rest(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


def test_jobs_are_those_that_run(flink: rest.Rest) -> None:
    assert flink.jobs() == ["first", "later"]
    assert [flink.ended(job) for job in ("first", "over", "unknown")] == [False, True, False]


def test_a_job_stops_with_a_savepoint(flink: rest.Rest) -> None:
    assert flink.stop_with_savepoint("first") == "file:/s"


def test_the_last_checkpoint_of_a_cancelled_job_is_found(flink: rest.Rest) -> None:
    assert flink.cancel("over") == "file:/c"


def test_a_savepoint_that_fails_says_why(flink: rest.Rest) -> None:
    with pytest.raises(RuntimeError) as failed:
        flink.stop_with_savepoint("later")
    assert str(failed.value) == "job later must stop with a savepoint, got no room"


def test_what_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "PATIENCE", 0.1)
    with pytest.raises(RuntimeError) as failed:
        rest.Rest(f"http://localhost:{free_port()}").wait_for_slots(4)
    assert str(failed.value) == "4 slots must come within 0 s, got <urlopen error [Errno 111] Connection refused>"


class _WithoutJobServer(Standalone):
    """A cluster of which only the REST interface is there."""

    def __init__(self, asked: rest.Rest):
        self.rest = asked

    def options(self, parallelism: int) -> list[str]:
        return ["--runner=PortableRunner", f"--parallelism={parallelism}"]


def test_a_program_that_cannot_hand_its_job_over_says_why(flink: rest.Rest, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as failed:
        launch(_WithoutJobServer(flink), tmp_path / "none.json", tmp_path / "corrected", ["--kafka_topic=reports"])
    assert str(failed.value) == "corrected ended with 2: estimate: --kafka_topic needs --bootstrap_servers, got none\n"


def test_a_trial_that_fails_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(trial, "fetch", lambda: None)
    folders: list[Path] = []

    def fail(folder: Path) -> str:
        folders.append(folder)
        raise RuntimeError("final must have one row a window, got {}")

    assert trial.try_out(fail) == 1
    assert capsys.readouterr().err == "final must have one row a window, got {}\n"
    assert not folders[0].exists()
    assert trial.try_out(lambda folder: "a table") == 0
    assert capsys.readouterr().out.endswith("\na table\n")


@pytest.mark.parametrize("name", kafka_rows.JOBS)
def test_commands_of_jobs_name_each_option_once(name: str) -> None:
    """As the main job demands: what a rig asks for replaces what is usual."""
    own = [f"--window={kafka_rows.WINDOW}s", *kafka_rows.JOBS[name]]
    words = stream.command(Path("c.json"), Path("rows"), own)[4:]
    assert set(own) < set(words)
    names = [word.partition("=")[0] for word in words]
    assert len(names) == len(set(names)) > len(own)
