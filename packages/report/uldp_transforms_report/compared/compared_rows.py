"""Comparisons of a directory, from the rows of ``uldp compare``: what differs, and what cannot be told."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.row_directory import COMPARISONS
from uldp_transforms.jobs.records.run_records import files_of
from uldp_transforms.ldp.confidence import confidence_or_default, error_rate
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.estimator import ANYTIME
from uldp_transforms.rows.figures.compared_figures import WITH_UNIT, clearest_rows, is_found
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms.rows.figures.window_names import WindowNames, local, starts_in
from uldp_transforms.rows.renamed_fields import former_names, with_new_names
from uldp_transforms.rows.row_types import COMPARED_SCHEMA
from uldp_transforms_report.levels import Levels

_FORMER = former_names(COMPARED_SCHEMA)

_TEXTS = ("collection_id", "value", "group_a", "group_b")
_NUMBERS = ("difference", "p_value", "q_value")
_MORE = (
    "low",
    "high",
    "selected_low",
    "selected_high",
    "noticeable",
    "display_low",
    "display_high",
    "liars",
    "collection_version",
    "confidence",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """The share of a value, or a figure of numbers, in ``a`` minus that in ``b``.

    Attributes:
        figure: the difference, with its interval; if it is found, with the interval after the selection.
        smooth: the same with the interval of the difference of smooth estimates, whose ends may be unknown.
        noticeable: difference that would usually be noticed; None if unknown.
        confidence: of the intervals; None: the default.
    """

    figure: Figure
    smooth: Figure
    a: str
    b: str
    q_value: float
    noticeable: float | None
    confidence: float | None = None

    @property
    def found(self) -> bool:
        return is_found(self.q_value, self.confidence)

    @property
    def rate(self) -> float:
        """Largest q-value of a difference that is found."""
        return error_rate(confidence_or_default(self.confidence))

    @property
    def shows_only_smooth(self) -> bool:
        """Whether it is not found and its interval contains 0, although its smooth interval does not."""
        return not (self.found or self.figure.told_apart) and self.smooth.told_apart

    @property
    def size(self) -> Figure:
        """The absolute difference, with its interval."""
        of = self.figure
        if of.value is None or of.value > 0:
            return of
        low, high = (None if end is None else -end for end in (of.high, of.low))
        return dataclasses.replace(of, value=-of.value, low=low, high=high)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparisons:
    """The differences of one collection: those that are found and those that are not, the clearest ones first.

    Attributes:
        name: of the collection.
        period: the time that all pairs cover together, in the time zone of the job; None without windows.
        found_left_out, untold_left_out: numbers of those that are not listed.
        anytime: whether intervals hold at all looks.
        liars: share of false reports on each side for which intervals allow; None: all reports are taken as honest.
        levels: confidences of the intervals.
        is_old: whether counts in the directory were written after the comparisons.
    """

    name: str
    period: str | None
    found: Sequence[Difference]
    untold: Sequence[Difference]
    found_left_out: int
    untold_left_out: int
    anytime: bool
    liars: float | None
    is_old: bool
    levels: Levels

    @property
    def number(self) -> int:
        """Number of all differences."""
        return len(self.found) + self.found_left_out + len(self.untold) + self.untold_left_out

    @property
    def some_show_only_smooth(self) -> bool:
        """Whether the smooth interval alone of a difference is without 0."""
        return any(one.shows_only_smooth for one in self.untold)

    @property
    def some_are_single(self) -> bool:
        """Whether the interval of a difference that is not found is without 0."""
        return any(one.figure.told_apart for one in self.untold)

    @property
    def is_smooth(self) -> bool:
        """Whether there are smooth intervals."""
        listed = (*self.found, *self.untold)
        return any(one.smooth.low is not None or one.smooth.high is not None for one in listed)

    @property
    def shares(self) -> list[Figure]:
        """The differences of shares."""
        return [one.figure for one in (*self.found, *self.untold) if one.figure.is_share]


def comparisons_of(path: str, most: int, zone: datetime.tzinfo = datetime.timezone.utc) -> list[Comparisons]:
    """The comparisons of a directory; none without a file ``comparisons.jsonl``.

    Args:
        path: output directory of a job.
        most: maximum number of differences in a table.
        zone: time zone in which windows are named.

    Raises:
        SpecError: if the file has other content.
        OSError: if it cannot be read.
    """
    files = files_of(path, COMPARISONS)
    rows = sorted(_rows(files[0]), key=_subject) if files else []
    is_old = bool(files) and any(
        stores.written_at(counts) > stores.written_at(files[0]) for counts in files_of(path, "counts*.avro")
    )
    by_subject = {subject: list(own) for subject, own in itertools.groupby(rows, key=_subject)}
    numbers = Counter(name for name, _ in by_subject)
    return [
        _of(name if numbers[name] == 1 else f"{name}, {_version(version)}", own, most, is_old, zone)
        for (name, version), own in by_subject.items()
    ]


def _subject(row: Mapping[str, Any]) -> tuple[str, int]:
    """Name and version of the collection of a row; 0 for a question, -1 if the row does not say."""
    version = row.get("collection_version")
    return row["collection_id"], -1 if version is None else version


def _version(version: int) -> str:
    return f"version {version}" if version > 0 else "all versions"


def _of(name: str, rows: Sequence[Mapping[str, Any]], most: int, is_old: bool, zone: datetime.tzinfo) -> Comparisons:
    starts, ends = ([row[field] for row in rows if row.get(field)] for field in ("window_start", "window_end"))
    groups = itertools.chain(*((row["group_a"], row["group_b"]) for row in rows))
    names = WindowNames.among([*filter(_is_moment, [*starts, *ends]), *starts_in(groups)], zone)
    listed = [_difference(rows[at], names) for at in clearest_rows(rows)]
    found, untold = ([one for one in listed if one.found is which] for which in (True, False))
    return Comparisons(
        name=name,
        period=_period(min(starts), max(ends), names) if starts and ends else None,
        found=found[:most],
        untold=untold[:most],
        found_left_out=max(0, len(found) - most),
        untold_left_out=max(0, len(untold) - most),
        anytime=any(row.get("interval") == ANYTIME for row in rows),
        liars=max((row["liars"] for row in rows if row.get("liars") is not None), default=None),
        is_old=is_old,
        levels=Levels.of(rows),
    )


def _period(start: str, end: str, names: WindowNames) -> str:
    return names.window(start, end) if _is_moment(start) and _is_moment(end) else f"{start} to {end}"


def _is_moment(text: str) -> bool:
    try:
        local(text, datetime.timezone.utc)
    except ValueError:
        return False
    return True


def _difference(row: Mapping[str, Any], names: WindowNames) -> Difference:
    is_selected = is_found(row["q_value"], row.get("confidence")) and "selected_low" in row
    low, high = (row["selected_low"], row["selected_high"]) if is_selected else (row["low"], row["high"])
    is_share = row.get("figure") not in WITH_UNIT
    figure = Figure(name=row["value"], is_share=is_share, value=row["difference"], low=low, high=high)
    return Difference(
        figure=figure,
        smooth=dataclasses.replace(figure, low=row.get("display_low"), high=row.get("display_high")),
        a=names.text(row["group_a"]),
        b=names.text(row["group_b"]),
        q_value=row["q_value"],
        noticeable=row.get("noticeable"),
        confidence=row.get("confidence"),
    )


def _rows(path: str) -> list[Mapping[str, Any]]:
    """The rows of a file; raises SpecError for other content."""
    with stores.opened(path) as file:
        try:
            rows = [with_new_names({**json.loads(line)}, _FORMER) for line in file]
            right = all(_is_right(row) for row in rows)
        except (ValueError, TypeError, KeyError):
            right = False
    if not right:
        raise SpecError(f"{path} must contain rows of uldp compare (the content is not shown)")
    return rows


def _is_right(row: Mapping[str, Any]) -> bool:
    times = [row.get(name) for name in ("window_start", "window_end")]
    return (
        all(isinstance(row[name], str) for name in _TEXTS)
        and all(_is_number(row[name]) for name in _NUMBERS)
        and all(row.get(name) is None or _is_number(row[name]) for name in _MORE)
        and all(name in row for name in ("low", "high"))
        and all(time is None or isinstance(time, str) for time in times)
    )


def _is_number(number: object) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number)
