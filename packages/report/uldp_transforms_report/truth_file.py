"""True values from a table of people, for simulations and trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.windows import moment_of
from uldp_transforms_tables.cell_texts import as_listed
from uldp_transforms_tables.values_file import ValuesFile

_ROWS_AT_ONCE = 1 << 20


class Truth:
    """The values of all people, by time.

    Args:
        file: a column of values and, if there are windows, of times.

    Raises:
        SpecError: if the file has no rows, or an invalid one.
        OSError: if the file cannot be read.
    """

    def __init__(self, file: ValuesFile):
        self._path = file.path
        codes: dict[str, int] = {}
        found, times = [], []
        for values, moments in file.read(_ROWS_AT_ONCE):
            found.append(np.array([codes.setdefault(canonical(value), len(codes)) for value in values]))
            times.append(np.zeros(len(values), dtype=np.int64) if moments is None else moments)
            self._has_times = moments is not None
        if not found:
            raise SpecError(f"{file.path} must have at least one value, got none")
        self._codes = codes
        self._times = np.concatenate(times)
        order = np.argsort(self._times, kind="stable")
        self._times, self._of = self._times[order], np.concatenate(found)[order]

    def shares(self, start: str | None, end: str | None, values: Sequence[str]) -> np.ndarray:
        """(S,) true shares of the values among the people of a window, from start to end; nan if it has no people.

        Raises:
            SpecError: if the window has bounds, and the file has no times.
        """
        first, last = 0, len(self._of)
        if start is not None and end is not None:
            if not self._has_times:
                raise SpecError(f"{self._path} must have the column event_time for rows with windows, got none")
            first, last = (int(np.searchsorted(self._times, moment_of(edge))) for edge in (start, end))
        counts = np.bincount(self._of[first:last], minlength=len(self._codes) + 1)
        known = as_listed(list(map(canonical, values)), self._are_strange)
        at = [self._codes.get(value, len(self._codes)) for value in known]
        shares: np.ndarray = counts[at] / (last - first) if last > first else np.full(len(values), np.nan)
        return shares

    def _are_strange(self, values: Sequence[str]) -> np.ndarray:
        return np.array([value not in self._codes for value in values], dtype=bool)
