"""Forecast of the rows of a job before it runs: how many a window has, and what they cost.

An entry is one value of one row. Its costs are those that ``python -m labs.benchmarks entries`` prints.
"""

from __future__ import annotations

import dataclasses

from uldp_transforms.calendar_windows import CalendarWindows
from uldp_transforms.ldp.alphabets.dimensions import roll_up_of
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import duration_text

JSON_BYTES = 365
"""Bytes of an entry in JSON lines."""

AVRO_BYTES = 70
"""The most bytes of an entry in Avro, for numbers that are all different; if most are 0, it has a sixth of that."""

SECONDS = 9e-6
"""CPU time of an entry, for the estimate by ``eb``, its intervals and both files."""

JOB_BYTES, COUNT_BYTES = 300e6, 20
"""Memory of a job over files, and of the counts of an entry, which the local engine keeps. Rows do not wait in memory.
"""

PERIOD = 30 * DAY
"""Time for which rows are forecast, in milliseconds."""

MANY = 10_000_000
"""Number of entries in ``PERIOD`` from which a job should know what they cost."""

MANY_AT_ONCE = 10_000
"""The same for one window, where the length of windows is not known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowForecast:
    """Numbers of a window.

    Attributes:
        rows: rows of estimates, at most.
        entries: values in all these rows.
        windows: number of windows in ``PERIOD``; None: windows are not known, or there is only one.
        in_files: whether the job is over files.
    """

    rows: int
    entries: int
    windows: int | None = None
    in_files: bool = False

    @classmethod
    def of(cls, spec: JobSpec) -> RowForecast:
        """The forecast of a job in which every group has reports in every window."""
        by, rows, entries = spec.by or (), 0, 0
        alone = [(collection,) for collection in spec.collections]
        for versions in (*alone, *(question.pooled for question in spec.questions)):
            number = 1 + max((one.num_groups_by(by) for one in versions if roll_up_of(one.dimensions, by)), default=0)
            alphabet = versions[-1].alphabet
            values = alphabet.known_values or alphabet.estimated_values(spec.candidates)
            rows += number
            entries += number * min(len(values), spec.show)
        return cls(rows=rows, entries=entries, windows=_windows_of(spec), in_files=bool(spec.bounded))

    @property
    def of_each(self) -> int:
        """Number of entries of each of several windows; 0 if there is only one, or their length is not known."""
        return 0 if self.windows is None else self.entries

    @property
    def in_period(self) -> int:
        """Number of entries in ``PERIOD``, or in one window if the length of windows is not known."""
        return self.entries * (1 if self.windows is None else self.windows)

    @property
    def is_large(self) -> bool:
        """Whether a job or a plan should say it."""
        return self.in_period >= (MANY_AT_ONCE if self.windows is None else MANY)

    def sentence(self) -> str:
        """Rows, bytes, time and memory, and what makes them fewer."""
        said = f"a window has up to {_number(self.rows, 'row')} with {_number(self.entries, 'value')}"
        entries = self.in_period
        if self.windows is not None:
            said += f", and {duration_text(PERIOD)} have {_number(self.windows, 'window')}"
        memory = f" and {_bytes(JOB_BYTES + COUNT_BYTES * entries)} of memory" if self.in_files else ""
        return (
            f"{said}: about {_bytes(JSON_BYTES * entries)} of JSON lines, at most {_bytes(AVRO_BYTES * entries)} of "
            f"Avro, {_time(SECONDS * entries)} of CPU{memory}; for "
            "less, use a smaller --show, fewer dimensions in --by, a longer --window, or --write_json false"
        )


def _windows_of(spec: JobSpec) -> int | None:
    if spec.windows is None:
        return None
    step = spec.windows.step
    if isinstance(spec.windows, CalendarWindows):
        step *= DAY if spec.windows.unit == "d" else PERIOD
    return -(-PERIOD // step)


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(1, round(seconds))} s"


def _bytes(number: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:.2g} {unit}" if number < 99 * size else f"{number / size:,.0f} {unit}"
    return f"{number / 1e3:,.0f} kB"
