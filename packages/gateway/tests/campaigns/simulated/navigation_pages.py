"""Pages that send navigations, the log of the gateway with faults, and what ``uldp navigations`` reads of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from packages.gateway.tests.campaigns.simulated import Faults
from uldp_transforms_gateway.navigations.navigation_log import NavigationLog
from uldp_transforms_gateway.navigations.page_lines import checked
from uldp_transforms_survey.navigations.navigation_lines import table_of_paths

KEPT, TORN, NO_NAVIGATION, IN_DOUBT = (
    *("navigations that are kept", "lines that a kill or a full disk tore"),
    *("lines that are no navigation", "navigations without an answer"),
)
WRONG = (b" ", b"[]", b"null", b"{", b'{"confidence": "high", "rate": 2, "duration": 1}', b'{"page": "/x"}' * 9)


class FullDisk:
    """A file that takes a part of what is written to it."""

    def __init__(self, file: Any, most: int):
        self._file, self._most = file, most

    def write(self, data: bytes) -> int:
        if not self._most:
            raise OSError(28, "No space left on device")
        part, self._most = data[: self._most], max(0, self._most - len(data))
        return int(self._file.write(part))

    def fileno(self) -> int:
        return int(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class NavigationPages:
    """Pages, each of whose navigations has a loading time of its own.

    Args:
        folder: empty.
        faults: what happens.
    """

    def __init__(self, folder: Path, faults: Faults):
        self._folder, self._faults = folder / "navigations", faults
        self._log = NavigationLog(str(self._folder))
        self._number = 0
        self._answered: set[int] = set()
        self._in_doubt: set[int] = set()

    def send(self, now: int) -> None:
        """A few pages send a body each."""
        faults = self._faults
        bodies = [self._body() for _ in range(int(faults.rng.integers(1, 4)))]
        parts = []
        for lines, durations in bodies:
            kept, refused = checked(b"\n".join(lines), now / 1000)
            assert (len(kept), refused.total()) == (len(durations), len(lines) - len(durations))
            faults.numbers[NO_NAVIGATION] += refused.total()
            parts.append(b"".join(kept))
        if self._write(parts):
            self._answered |= {each for _, durations in bodies for each in durations}
        else:
            self._in_doubt |= {each for _, durations in bodies for each in durations}

    def _body(self) -> tuple[list[bytes], list[int]]:
        lines, durations = [], []
        for _ in range(int(self._faults.rng.integers(1, 6))):
            if self._faults.rng.random() < 0.2:
                lines.append(WRONG[int(self._faults.rng.integers(len(WRONG)))])
                continue
            self._number += 1
            durations.append(self._number)
            lines.append(json.dumps({"confidence": "low", "rate": 0.5, "duration": self._number}).encode())
        return lines, durations

    def _write(self, parts: list[bytes]) -> bool:
        """Write as the gateway does; whether it could answer."""
        log, faults = self._log, self._faults
        size, of_no_token = sum(map(len, parts)), [(part, None) for part in parts]
        if log._file is not None and faults.happens(0.1, "disks that are full"):
            # it has all of a file that the log uses
            log._file = FullDisk(log._file, int(faults.rng.integers(size))) if size else log._file  # type: ignore[assignment]
        if faults.happens(0.15, "kills of the gateway in a line"):
            if log._append(of_no_token) is None and size:
                with log._path.open("r+b") as there:
                    there.truncate(log._path.stat().st_size - int(faults.rng.integers(size + 1)))
            log._end()
            self._log = NavigationLog(str(self._folder))
            return False
        return log._append(of_no_token) is None

    def check(self) -> None:
        """Each navigation that was answered is read once, each other one once or not at all; nothing else is."""
        self._log._end()
        numbers = self._faults.numbers
        numbers[IN_DOUBT] += len(self._in_doubt)
        if not list(self._folder.iterdir()):
            assert not self._answered
            return
        cells = [
            row for batch in table_of_paths([str(self._folder)]).read(["duration", "rate"]) for row in batch.to_pylist()
        ]
        read = Counter(int(row["duration"]) for row in cells if row["duration"] is not None)
        numbers[TORN] += sum(row["duration"] is None for row in cells)
        assert not read or set(read.values()) == {1}
        assert self._answered <= read.keys() <= self._answered | self._in_doubt
        numbers[KEPT] += len(read)
