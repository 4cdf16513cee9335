"""The plain values that a specification is built from: texts, numbers, and files that hold them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from apache_beam.transforms.window import WindowFn

from uldp_transforms.beam.runtime.beam_windows import windows_of_beam
from uldp_transforms.calendar_windows import calendar_windows, is_months
from uldp_transforms.files.collection_files import read_collection
from uldp_transforms.files.text_files import read_lines, read_text
from uldp_transforms.ldp.checks import describe, parse_json, require_keys, require_mapping
from uldp_transforms.ldp.collection import MAX_CANDIDATE_BYTES, Collection, canonical_candidates
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES
from uldp_transforms.windows import Windows, milliseconds, moment_of, rfc3339

_AS_THEY_ARE = (
    "release",
    "deduplicate",
    "deduplicate_parts",
    "bit_patterns",
    "smooth",
    "alarm_every",
    "discover",
    "estimator",
    "min_reports",
    "show",
    "max_rejected_share",
    "bounded",
    "run",
)
_WINDOW = ("window", "slide", "window_offset", "timezone")
_DURATIONS = ("allowed_lateness", "early_every", "late_every", "future_skew", "lateness_slack")


class SpecValues(TypedDict, total=False):
    """The plain values that a ``JobSpec`` is built from; all but ``collections`` have defaults.

    Durations are texts such as ``"15m"``, or ``datetime.timedelta``.

    Attributes:
        collections: what reports are made for: paths of JSON files, the objects in them (as objects, as rows of Beam,
            or as texts, which begin with ``{``), or ``Collection``.
        window: length of a window; or Beam's ``FixedWindows`` or ``SlidingWindows``. None: one for all reports, only
            for bounded input.
        slide: time between the starts of two windows. None: ``window``.
        window_offset: by how much windows start after 1970-01-01T00:00:00Z and its multiples. None: not at all.
        timezone: name of a time zone such as ``"Europe/Berlin"``; ``window``, ``slide`` and ``window_offset`` are then
            days, weeks (from Monday on) or months of that place. None: days are those of UTC.
        allowed_lateness: how long after the end of its base period a report still counts, in a stream. Default 1h.
        early_every: in a stream, also estimate unfinished windows, this often; whole seconds. None: do not.
        late_every: in a stream, correct the row of a window at most this often, by the clock; whole seconds. ``"0s"``:
            for each bundle with late reports. Default 1m; not with ``release="final"``, which corrects nothing.
        release: in a stream, ``"corrected"`` (default): a row when the watermark passes the end of a window, and
            further ones while late reports change it. ``"final"``: one row, after the allowed lateness.
        deduplicate: count each report id once per base period; costs a shuffle and state. Default False.
        deduplicate_parts: parts of a base period, over which workers share it; each is read whole after a restart.
            None: 16.
        bit_patterns: look inside the reports of rappor, urap and aoue, for two more sentinels. Default False.
        smooth: also estimate the shares of each window from its neighbours: in a stream from those before it, in files
            from all. Default False.
        alarm_every: windows of a collection between two false alarms that a share moved, in the mean; only with
            ``smooth``. None: 1,000.
        candidates: values to estimate in open alphabets: a list, or the path of a text file with one value a line
            (UTF-8, .gz or not). White space around a line is no part of the value; in a list it is refused.
        discover: also search alphabets of prefixes for frequent values that nobody listed; takes up to a minute for
            each window and pane. Default False.
        estimator: id. None: eb.
        min_reports: windows with fewer reports are suppressed. Default 100.
        show: how many values a row has at most: those with the largest frequencies. Default 10,000.
        max_rejected_share: share of refused reports that is taken for a wrong configuration. Above it a stream fails,
            if it is reached among 1,000 reports in a row and for one reason, so that they stay in their queue; a job
            over files ends with another exit code. 1: never. None: 0.99 of a stream, 0.5 of files.
        bounded: whether the input ends; files do, streams do not. None: as the input says.
        future_skew: how far the clock of a client may be ahead. Default 5m.
        lateness_slack: how long state outlives the allowed lateness. It has to exceed the time by which the watermark
            runs ahead of the clock, or the runner drops late reports silently before the gate refuses them. None: 10m,
            and ten years on local engines, whose watermark is the clock.
        run: name of this run of the job, which all its rows carry: 1 to 64 letters, digits, ".", "_" and "-", a letter
            or digit first. Later runs must sort after earlier ones as text; readers take the rows of the latest. None:
            rows name no run.
        partial_before: in a stream, a time in RFC 3339: windows that begin before it are ``partial`` in every row,
            because an earlier run acknowledged some of their reports, which never come again. None: there was none.
    """

    collections: Sequence[Collection | Mapping[str, Any] | NamedTuple | str | os.PathLike[str]]
    window: str | datetime.timedelta | WindowFn | Windows | None
    slide: str | datetime.timedelta | None
    window_offset: str | datetime.timedelta | None
    timezone: str | None
    allowed_lateness: str | datetime.timedelta
    early_every: str | datetime.timedelta | None
    late_every: str | datetime.timedelta
    release: str
    deduplicate: bool
    deduplicate_parts: int | None
    bit_patterns: bool
    smooth: bool
    alarm_every: int | None
    candidates: Sequence[str] | str | os.PathLike[str] | None
    discover: bool
    estimator: str | None
    min_reports: int
    show: int
    max_rejected_share: float | None
    bounded: bool | None
    future_skew: str | datetime.timedelta
    lateness_slack: str | datetime.timedelta | None
    run: str | None
    partial_before: str | None


def fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a ``JobSpec`` that these ``SpecValues`` describe; None stands for what is not given.

    Raises:
        SpecError: for a missing, unknown or wrong value.
        OSError: for a file that cannot be read.
    """
    require_keys("JobSpec", values, ("collections",), SpecValues.__annotations__)
    given = {name: value for name, value in values.items() if value is not None}
    fields: dict[str, Any] = {name: given[name] for name in _AS_THEY_ARE if name in given}
    for name in _DURATIONS:
        if name in given:
            fields[name] = milliseconds(given[name], f"JobSpec.{name}")
    if "candidates" in given:
        fields["candidates"] = _candidates(given["candidates"])
    if "partial_before" in given:
        fields["partial_before"] = _moment(given["partial_before"])
    return {"collections": _collections(given.get("collections")), "windows": _windows(given), **fields}


def values_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values from which ``fields_of`` makes these fields of a ``JobSpec`` again."""
    windows, candidates, cut = (fields[name] for name in ("windows", "candidates", "partial_before"))
    return {
        "collections": [collection.to_json() for collection in fields["collections"]],
        **(dict.fromkeys(_WINDOW) if windows is None else windows.to_json()),
        **{name: None if fields[name] is None else f"{fields[name]}ms" for name in _DURATIONS},
        **{name: fields[name] for name in _AS_THEY_ARE},
        "candidates": None if candidates is None else list(candidates),
        "partial_before": None if cut is None else rfc3339(cut),
    }


def read_values(source: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """The values in a JSON file, in the object that such a file holds, or in a text that begins with ``{``.

    Raises:
        SpecError: for what is no JSON object.
        OSError: for a file that cannot be read.
    """
    if isinstance(source, str) and source.lstrip().startswith("{"):
        source = parse_json(source, "JobSpec")
    elif isinstance(source, (str, os.PathLike)):
        source = parse_json(read_text(source), str(source))
    return require_mapping("JobSpec", source)


def _collections(given: object) -> tuple[Collection, ...]:
    if not isinstance(given, (list, tuple)) or hasattr(given, "_asdict"):
        raise SpecError(
            f"JobSpec.collections must be a list of collections, JSON objects or paths, got {describe(given)}"
        )
    return tuple(item if isinstance(item, Collection) else read_collection(item) for item in given)


def _windows(given: Mapping[str, Any]) -> Windows | None:
    window, rest = given.get("window"), {name: given[name] for name in _WINDOW[1:] if name in given}
    if isinstance(window, WindowFn):
        window = windows_of_beam(window)
    if window is None or isinstance(window, Windows):
        if rest:
            came = "none" if window is None else "a window object, which has its own"
            raise SpecError(f"JobSpec.window must be a duration where {' or '.join(rest)} is given, got {came}")
        return window
    if "timezone" in rest or is_months(window):
        return calendar_windows(window, **rest)
    return Windows(
        size=milliseconds(window, "JobSpec.window"),
        slide=milliseconds(rest["slide"], "JobSpec.slide") if "slide" in rest else None,
        offset=milliseconds(rest["window_offset"], "JobSpec.window_offset") if "window_offset" in rest else 0,
    )


def _moment(given: Any) -> int:
    """Milliseconds since 1970 of a time in RFC 3339."""
    try:
        return moment_of(given)
    except (TypeError, ValueError, OverflowError):
        raise SpecError(
            f'JobSpec.partial_before must be a time such as "2026-01-31T00:00:00Z", got {describe(given)}'
        ) from None


def _candidates(given: Any) -> tuple[str, ...]:
    if isinstance(given, (str, os.PathLike)):
        given = read_lines(given, most=MAX_CANDIDATES, longest=MAX_CANDIDATE_BYTES)
    if isinstance(given, Mapping):
        raise SpecError(f"JobSpec.candidates must be a list of texts or the path of a file, got {describe(given)}")
    return canonical_candidates(given)
