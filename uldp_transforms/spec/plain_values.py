"""The plain values from which a specification is built: texts, numbers, and files that contain them."""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from uldp_transforms.calendar_windows import calendar_windows, is_months
from uldp_transforms.files.collection_files import read_collection
from uldp_transforms.files.text_files import read_lines, read_text
from uldp_transforms.ldp.checks import describe, is_number, parse_json, require_keys, require_mapping
from uldp_transforms.ldp.collection import MAX_CANDIDATE_BYTES, Collection, canonical_candidates
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.share_sums import NamedSum, read_sums
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES
from uldp_transforms.spec.spec_fields import SPEC_FIELDS, Kind, Section
from uldp_transforms.spec.spec_rules import check_agreement, voice_of_library
from uldp_transforms.windows import Windows, milliseconds, moment_of, rfc3339

_WINDOW = [field.name for field in SPEC_FIELDS.values() if field.section is Section.WINDOWS]
_DURATIONS = [field.name for field in SPEC_FIELDS.values() if field.kind is Kind.DURATION]
_NUMBERS = [field.name for field in SPEC_FIELDS.values() if field.kind is Kind.NUMBERS]
_WRITTEN_OTHERWISE = ("collections", "candidates", "sums", "partial_before", "by", *_WINDOW, *_DURATIONS, *_NUMBERS)
_AS_THEY_ARE = [name for name in SPEC_FIELDS if name not in _WRITTEN_OTHERWISE]


class SpecValues(TypedDict, total=False):
    """The plain values from which a ``JobSpec`` is built; all except ``collections`` have defaults.

    ``SPEC_FIELDS`` gives their meaning and cost; ``docs/estimate-reports.md`` shows it as a table. None selects the
    default. Durations are texts such as ``"15m"``, or ``datetime.timedelta``; ``window`` can also be Beam's
    ``FixedWindows`` or ``SlidingWindows``; ``candidates`` are a list, or the path of a text file with one value per
    line (UTF-8, .gz or not). White space around a value is ignored in a file and refused in a list. ``sums`` are a JSON
    object, a JSON text, which begins with ``{``, or the path of a JSON file.
    """

    collections: Sequence[Collection | Mapping[str, Any] | NamedTuple | str | os.PathLike[str]]
    window: str | datetime.timedelta | EngineWindows | Windows | None
    slide: str | datetime.timedelta | None
    window_offset: str | datetime.timedelta | None
    timezone: str | None
    allowed_lateness: str | datetime.timedelta
    early_every: str | datetime.timedelta | None
    late_every: str | datetime.timedelta
    release: str
    deduplicate: bool
    deduplicate_parts: int | None
    deduplicate_by: str
    bit_patterns: bool
    by: Sequence[str] | str | None
    smooth: bool
    alarm_every: int | None
    candidates: Sequence[str] | str | os.PathLike[str] | None
    limits: Sequence[float] | str | None
    quantiles: Sequence[float] | str | None
    sums: Mapping[str, Any] | str | os.PathLike[str] | None
    discover: bool
    estimator: str | None
    min_reports: int
    show: int
    liars: float | None
    confidence: float | None
    borrow: bool
    max_rejected_share: float | None
    bounded: bool | None
    future_skew: str | datetime.timedelta
    lateness_slack: str | datetime.timedelta | None
    run: str | None
    partial_before: str | None


def fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert ``SpecValues`` to the fields of a ``JobSpec``; None means that a value is not given.

    Raises:
        SpecError: if a value is missing, unknown or wrong.
        OSError: if a file cannot be read.
    """
    require_keys("JobSpec", values, ("collections",), SPEC_FIELDS)
    given = {name: value for name, value in values.items() if value is not None}
    fields: dict[str, Any] = {name: given[name] for name in _AS_THEY_ARE if name in given}
    for name in _DURATIONS:
        if name in given:
            fields[name] = milliseconds(given[name], f"JobSpec.{name}")
    for name in _NUMBERS:
        if name in given:
            fields[name] = _numbers(given[name])
    if "by" in given:
        fields["by"] = _names(given["by"])
    if "candidates" in given:
        fields["candidates"] = _candidates(given["candidates"])
    if "sums" in given:
        fields["sums"] = _sums(given["sums"])
    if "partial_before" in given:
        fields["partial_before"] = _moment(given["partial_before"])
    return {"collections": _collections(given.get("collections")), "windows": _windows(given), **fields}


def values_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values that ``fields_of`` converts back to these fields of a ``JobSpec``."""
    windows, candidates, cut = (fields[name] for name in ("windows", "candidates", "partial_before"))
    return {
        "collections": [collection.to_json() for collection in fields["collections"]],
        **(dict.fromkeys(_WINDOW) if windows is None else windows.to_json()),
        **{name: None if fields[name] is None else f"{fields[name]}ms" for name in _DURATIONS},
        **{name: fields[name] if _applies(name, fields) else None for name in _AS_THEY_ARE},
        **{name: None if fields[name] is None else list(fields[name]) for name in _NUMBERS},
        "by": None if fields["by"] is None else list(fields["by"]),
        "candidates": None if candidates is None else list(candidates),
        "sums": None if fields["sums"] is None else {one.name: one.to_json() for one in fields["sums"]},
        "partial_before": None if cut is None else rfc3339(cut),
    }


def _applies(name: str, fields: Mapping[str, Any]) -> bool:
    """Whether all fields that a field needs are switched on."""
    return all(fields[needed] for needed in SPEC_FIELDS[name].needs if needed in fields)


def read_values(source: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the values from a JSON file, a JSON object, or a JSON text, which begins with ``{``.

    Raises:
        SpecError: if it is not a JSON object.
        OSError: if a file cannot be read.
    """
    return require_mapping("JobSpec", _json_of(source, "JobSpec"))


def _json_of(source: Any, owner: str) -> Any:
    """What a JSON text, which begins with ``{``, or a JSON file contains; anything else as it is."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return parse_json(source, owner)
    return parse_json(read_text(source), str(source)) if isinstance(source, (str, os.PathLike)) else source


def _collections(given: object) -> tuple[Collection, ...]:
    if not isinstance(given, (list, tuple)) or hasattr(given, "_asdict"):
        raise SpecError(
            f"JobSpec.collections must be a list of collections, JSON objects or paths, got {describe(given)}"
        )
    return tuple(item if isinstance(item, Collection) else read_collection(item) for item in given)


def _windows(given: Mapping[str, Any]) -> Windows | None:
    window, rest = given.get("window"), {name: given[name] for name in _WINDOW if name in given and name != "window"}
    check_agreement({name: given[name] for name in _WINDOW if name in given}, voice_of_library())
    if window is None:
        return None
    if isinstance(window, Windows) or is_of_engine(window):
        if rest:
            raise SpecError(
                f"JobSpec.window must be a duration where {' or '.join(rest)} is given, got a window "
                "object, which defines its own"
            )
        return window if isinstance(window, Windows) else windows_of_engine(window)
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


def _numbers(given: Any) -> Any:
    """Numbers of a list, or of a text with commas, as a tuple; anything else as it is, for ``JobSpec`` to refuse."""
    if isinstance(given, str):
        try:
            given = [float(part) for part in given.split(",")]
        except ValueError:
            return given
    if isinstance(given, (list, tuple)) and all(map(is_number, given)):
        return tuple(map(float, given))
    return given


def _names(given: Any) -> Any:
    """Names of a list, or of a text with commas, as a tuple; None for no name, which selects the total alone."""
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",")] if given.strip() else []
    return (tuple(given) or None) if isinstance(given, (list, tuple)) else given


def _sums(given: Any) -> tuple[NamedSum, ...]:
    """The sums of a JSON object, a JSON text, or a JSON file."""
    plain = _json_of(given, "JobSpec.sums")
    try:
        return read_sums(plain)
    except SpecError as error:
        raise SpecError(f"JobSpec.{error}") from None


def _candidates(given: Any) -> tuple[str, ...]:
    if isinstance(given, (str, os.PathLike)):
        given = read_lines(given, most=MAX_CANDIDATES, longest=MAX_CANDIDATE_BYTES)
    if isinstance(given, Mapping):
        raise SpecError(f"JobSpec.candidates must be a list of texts or the path of a file, got {describe(given)}")
    return canonical_candidates(given)


EngineWindows = Any
"""An object that an engine has for windows; no engine is imported for its type."""

_ENGINES = {("apache_beam", "WindowFn"): ("uldp_transforms.beam.runtime.beam_windows", "windows_of_beam")}
"""Package and class of such objects -> module and function that convert them, imported when one is given."""


def is_of_engine(given: object) -> bool:
    """Whether an object is the windows of an engine."""
    return _converter(given) is not None


def windows_of_engine(given: object) -> Windows | None:
    """Windows of this package; None for a single window for all time.

    Raises:
        SpecError: for windows in which reports cannot be counted, such as sessions.
    """
    module, function = _converter(given) or ("", "")
    windows: Windows | None = getattr(importlib.import_module(module), function)(given)
    return windows


def _converter(given: object) -> tuple[str, str] | None:
    classes = ((base.__module__.partition(".")[0], base.__name__) for base in type(given).__mro__)
    return next((_ENGINES[name] for name in classes if name in _ENGINES), None)
