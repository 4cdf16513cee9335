"""Progress display of long work, on terminals only."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from tqdm import tqdm

from uldp_transforms.beam.runtime import metrics

_EVERY = 0.5  # seconds


def bar(program: str) -> tqdm[None]:
    """A progress line that counts reports: a context manager with ``update``."""
    line: tqdm[None] = tqdm(desc=program, unit=" reports", unit_scale=True, disable=None, leave=False)
    line.refresh()
    return line


@contextlib.contextmanager
def of_this_process(program: str) -> Iterator[None]:
    """A context in which the progress line shows the metrics of this process: reports and windows."""
    ended = threading.Event()

    def show() -> None:
        with bar(program) as line:
            while not (line.disable or ended.wait(_EVERY)):
                windows = sum(number for name, number in metrics.SEEN.items() if name.startswith(metrics.WINDOWS))
                line.set_postfix(windows=windows, refresh=False)
                line.update(metrics.SEEN[metrics.RECEIVED] - line.n)

    showing = threading.Thread(target=show, name="progress", daemon=True)
    metrics.SEEN.clear()
    showing.start()
    try:
        yield
    finally:
        ended.set()
        showing.join()
