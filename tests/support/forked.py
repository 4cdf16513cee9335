"""Programs as processes that are forked from one that has imported Beam: as real as others, two seconds cheaper.

``start`` is for tests of what a process does: that it is killed, what it prints, its exit code. How programs start from
nothing is tested where they are run as modules (``tests/jobs/commands/test_uldp.py``).

Three kinds of processes: the server imports and forks keepers; a keeper forks one job, tells its id and how it ended;
a job runs the program until the interpreter ends.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from requirements.companions import search_path

ROOT = Path(__file__).parents[2]


cpu_seconds: list[float] = []
"""User and system time of each program that ended under this server, which counts as a child only when it ends."""


class Forked:
    """A running program, with what tests use of ``subprocess.Popen``."""

    def __init__(self, keeper: socket.socket):
        keeper.settimeout(None)
        self._keeper = keeper.makefile("rb")
        keeper.close()
        self._fd = self._keeper.fileno()
        self.pid = int(self._keeper.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once there is one.

        Raises:
            subprocess.TimeoutExpired: if it runs longer.
        """
        if self.returncode is None:
            if not _readable(self._fd, timeout):
                raise subprocess.TimeoutExpired("a forked program", timeout or 0)
            status, seconds = self._keeper.readline().split()
            self.returncode = os.waitstatus_to_exitcode(int(status))
            cpu_seconds.append(float(seconds))
            self._keeper.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _readable(fd: int, timeout: float | None) -> bool:
    import select  # noqa: PLC0415  # forked programs import this module, but not what only tests use

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def start(
    program: str,
    arguments: Sequence[str],
    output: IO[Any],
    errors: IO[Any],
    *,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    path: str = str(ROOT),
) -> Forked | subprocess.Popen[bytes]:
    """Run Python code as ``python -c`` does, where Beam and the commands of this package are imported already.

    Args:
        program: the code.
        arguments: ``sys.argv[1:]``.
        output: standard output.
        errors: standard error.
        folder: the working directory.
        environment: all its variables (default: those of this process).
        path: the first folder of ``sys.path``.
    """
    variables = dict(environment or os.environ)
    try:
        return _forked(program, arguments, output, errors, folder, variables, path)
    except (OSError, ValueError):  # no server, or one that ended: from the start
        command = [sys.executable, "-c", program, *arguments]
        known = variables | {"PYTHONPATH": f"{path}{os.pathsep}{search_path()}"}
        return subprocess.Popen(command, cwd=folder, stdout=output, stderr=errors, env=known)


def _forked(
    program: str,
    arguments: Sequence[str],
    output: IO[Any],
    errors: IO[Any],
    folder: Path,
    variables: dict[str, str],
    path: str,
) -> Forked:
    mine, theirs = socket.socketpair()
    if _server().has_ended():
        _server.cache_clear()  # a signal to all processes of a test may end it
    _server().send_fds(theirs, output, errors)
    theirs.close()
    job = {"program": program, "arguments": list(arguments), "folder": str(folder), "path": path}
    mine.sendall(json.dumps(job | {"environment": variables}).encode() + b"\n")
    return Forked(mine)


def run(
    program: str, arguments: Sequence[str], *, folder: Path, path: str = str(ROOT), timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """``start`` until the end, with all that was printed."""
    import tempfile  # noqa: PLC0415  # forked programs import this module, but not what only tests use

    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = start(program, arguments, output, errors, folder=folder, path=path)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess([program, *arguments], code, output.read(), errors.read())


class _Server:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, "-c", f"from tests.support import forked; forked.serve({theirs.fileno()})"]
        command[2] += "\nexec(compile(forked.PROGRAM, '<string>', 'exec'), {'__name__': '__main__'})"
        environment = os.environ | {"PYTHONPATH": search_path(), "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()

    def send_fds(self, *files: Any) -> None:
        socket.send_fds(self._socket, [b"j"], [file.fileno() for file in files])

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        self._socket.close()
        self._process.wait()
        cpu_seconds.clear()


@functools.cache
def _server() -> _Server:
    return _Server()


def stop() -> None:
    """End the server, if there is one."""
    if _server.cache_info().currsize:
        _server().stop()
        _server.cache_clear()


# ---------------------------------------------------------------------- the server, keepers and jobs

PROGRAM = ""
"""What a job runs."""


IMPORTED = (
    "apache_beam.runners.direct.direct_runner",
    "apache_beam.runners.portability.fn_api_runner",
    "uldp_transforms.beam.estimate_reports",
    "uldp_transforms.jobs.estimate.run",
    "uldp_transforms.jobs.estimate.run",
    "uldp_transforms.jobs.uldp",
)
"""Modules that most programs need."""

OF_COMPANIONS = (
    "uldp_transforms_gateway.serve",
    "uldp_transforms_gateway.web",
    "uldp_transforms_tables.simulate.simulate_command",
)
"""The same, where their companions are installed."""


def serve(fd: int) -> None:
    """Fork until nobody asks any more; it returns in jobs alone."""
    there = (name for name in OF_COMPANIONS if importlib.util.find_spec(name.partition(".")[0]))
    for name in (*IMPORTED, *there):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    own = socket.socket(fileno=fd)
    own.setblocking(True)  # whatever limit a library has set for all sockets
    while True:
        message, fds, *_ = socket.recv_fds(own, 1, 3)
        if not message:
            _reap(0)
            os._exit(0)
        if os.fork() == 0:
            own.close()
            if _keep(*fds):
                return
            os._exit(0)
        for other in fds:
            os.close(other)
        _reap(os.WNOHANG)


def _reap(options: int) -> None:
    """Wait for keepers, so that what they took counts as time of the tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _keep(fd: int, output: int, errors: int) -> bool:
    """Whether this is the job."""
    keeper = socket.socket(fileno=fd)
    keeper.setblocking(True)
    with keeper.makefile("rb") as asked:
        job = json.loads(asked.readline())
    process = os.fork()
    if process:
        for other in (output, errors):
            os.close(other)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the job
        with contextlib.suppress(BrokenPipeError):
            keeper.sendall(b"%d\n" % process)
        _, status, used = os.wait4(process, 0)
        with contextlib.suppress(BrokenPipeError):
            keeper.sendall(b"%d %f\n" % (status, used.ru_utime + used.ru_stime))
        return False
    keeper.close()
    os.dup2(output, 1)
    os.dup2(errors, 2)
    for other in (output, errors):
        os.close(other)
    _become(job)
    return True


def _become(job: dict[str, Any]) -> None:
    global PROGRAM  # noqa: PLW0603  # the last line of the server's own program runs it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.path.insert(0, job["path"])
    sys.argv = ["-c", *job["arguments"]]
    PROGRAM = job["program"]
