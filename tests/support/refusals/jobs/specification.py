"""Refusals of the specification of a job: calls and their sentences."""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Any

from tests.support.messages_cases import KRR, RAPPOR, collection
from tests.support.refusals.tables import Refusal
from tests.support.without_time_zones import without_time_zones
from uldp_transforms import CalendarWindows, JobSpec, Windows
from uldp_transforms.ldp import Collection
from uldp_transforms.spec.spec_fields import (
    MAX_PARTS,
    SPEC_FIELDS,
)
from uldp_transforms.windows import (
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
)

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
CENTURY, YEAR = 36_525 * DAY, 365 * DAY
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr")
DELAYS = collection("delays", {"id": "ordered", "low": 0, "high": 60, "num_bins": 4}, "sw")
BY_ARM = Collection.from_json(KRR.to_json() | {"dimensions": [{"name": "arm", "values": ["new"]}]})


def of(**values: Any) -> JobSpec:
    return JobSpec.of(**{"collections": [KRR], "window": "1h"} | values)


ASKED = {
    name: dataclasses.replace(KRR, client_window=window, client_timezone=zone)
    for name, window, zone in (
        ("1h", "1h", None),
        ("1d", "1d", None),
        ("2w", "2w", None),
        ("berlin", "1d", "Europe/Berlin"),
        ("weeks", "1w", "Europe/Berlin"),
    )
}


def fields(**values: Any) -> JobSpec:
    return JobSpec(**{"collections": (KRR,), "windows": Windows(size=HOUR)} | values)


def ms(number: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=number)


DURATION = "must be a number with a unit such as 90s, 15m, 1h or 1d, got"
LENGTH = "must be days, weeks or months such as 1d, 1w or 1mo if windows follow a calendar, got"
TIMEZONE = 'CalendarWindows.timezone must be the name of a time zone such as "Europe/Berlin", got'
BERLIN = "Europe/Berlin"
KEYS = ", ".join(SPEC_FIELDS)
REFUSED: list[Refusal] = [
    (lambda: of(window=3600), "JobSpec.window must be a text with a unit such as 90s, 15m, 1h or 1d, got 3600"),
    (
        lambda: of(window=datetime.timedelta(microseconds=1500)),
        "JobSpec.window must be a text with a unit such as 90s, 15m, 1h or 1d, got "
        "datetime.timedelta(microseconds=1500)",
    ),
    (JobSpec.of, "JobSpec needs the key 'collections', got no keys"),
    (lambda: JobSpec.of(window="1h"), "JobSpec needs the key 'collections', got 'window'"),
    (lambda: of(windows="1h"), f"JobSpec takes the keys {KEYS}, got 'windows'; did you mean 'window'?"),
    (lambda: JobSpec.from_json([1]), "JobSpec must be a JSON object, got [1]"),
    (
        lambda: of(collections="krr.json"),
        "JobSpec.collections must be a list of collections, JSON objects or paths, got 'krr.json'",
    ),
    (
        lambda: of(collections=None),
        "JobSpec.collections must be a list of collections, JSON objects or paths, got None",
    ),
    (
        lambda: of(collections=[5]),
        "JobSpec.collections must hold collections, JSON objects or paths, got 5",
    ),
    (lambda: of(collections=[{}]), "Collection needs the key 'id', got no keys"),
    (lambda: of(collections=[]), "a job needs at least one collection, got none"),
    (
        lambda: of(collections=[KRR, KRR]),
        "collections of one job must have different fingerprints, got 'krr' version 1 and 'krr' version 1 with the "
        "same one",
    ),
    (
        lambda: of(collections=[KRR, Collection.from_json(RAPPOR.to_json() | {"id": "krr"})]),
        "collections of one job must differ in id or version, got 'krr' version 1 twice",
    ),
    (lambda: fields(collections=["krr.json"]), "JobSpec.collections must be a tuple of Collection, got ['krr.json']"),
    (lambda: fields(collections=("krr.json",)), "JobSpec.collections must be a tuple of Collection, got ('krr.json',)"),
    (lambda: fields(windows="1h"), "JobSpec.windows must be Windows or None, got '1h'"),
    *(
        (
            lambda name=name: of(run=name),
            'JobSpec.run must be 1 to 64 letters, digits, ".", "_" or "-", a letter or digit first, or null, got '
            f"{name!r}",
        )
        for name in ("", "-a", ".a", "a/b", "a b", "é", "a\n", 7)
    ),
    *(
        (
            lambda time=time: of(partial_before=time),
            f'JobSpec.partial_before must be a time such as "2026-01-31T00:00:00Z", got {time!r}',
        )
        for time in ("1h", "2026-01-31T00:00:00", 5, "")
    ),
    (
        lambda: fields(partial_before="2026-01-31T00:00:00Z"),
        f"JobSpec.partial_before must be an integer in [{MIN_EVENT_TIME}, {MAX_EVENT_TIME - 1}], got "
        "'2026-01-31T00:00:00Z'",
    ),
    (
        lambda: of(partial_before="2026-01-31T00:00:00Z", bounded=True),
        "JobSpec.partial_before needs an unbounded input, got a bounded one",
    ),
    (
        lambda: of(window="1s", bounded=False, allowed_lateness="3h"),
        "JobSpec.window must keep at most 10000 windows open per collection, got 11101 (one every 1s, "
        "with window 1s, allowed_lateness 3h and future_skew 5m); use a longer window or a shorter allowed_lateness",
    ),
    (
        lambda: of(window="1d", slide="1m", allowed_lateness="7d").for_input(False),
        "JobSpec.window must keep at most 10000 windows open per collection, got 11525 (one every 1m, "
        "with window 1d, allowed_lateness 7d and future_skew 5m); use a longer window or a shorter allowed_lateness",
    ),
    (
        lambda: of(window="1d", timezone=BERLIN, allowed_lateness="30000d").for_input(False),
        "JobSpec.window must keep at most 10000 windows open per collection, got 30004 (one every 1d, "
        "with window 1d, allowed_lateness 30000d and future_skew 5m); use a longer window or a shorter "
        "allowed_lateness",
    ),
    (lambda: of(window="1d", timezone="Berlin"), f"{TIMEZONE} 'Berlin'"),
    (lambda: of(window="1d", timezone="Europe"), f"{TIMEZONE} 'Europe'"),
    (lambda: of(window="1d", timezone="../../etc/passwd"), f"{TIMEZONE} '../../etc/passwd'"),
    (lambda: of(window="1d", timezone=""), f"{TIMEZONE} ''"),
    (lambda: of(window="1d", timezone=1), f"{TIMEZONE} 1"),
    (
        lambda: without_time_zones(lambda: of(window="1d", timezone=BERLIN)),
        "CalendarWindows.timezone needs a time-zone database, such as the package tzdata, got a machine without one",
    ),
    (
        lambda: CalendarWindows(size=1, unit="w", timezone=BERLIN),
        "CalendarWindows.unit must be one of d, mo, got 'w'",
    ),
    (lambda: of(window="1h", timezone=BERLIN), f"JobSpec.window {LENGTH} '1h'"),
    (lambda: of(window="24h", timezone=BERLIN), f"JobSpec.window {LENGTH} '24h'"),
    (lambda: of(window=ms(DAY + 1), timezone=BERLIN), f"JobSpec.window {LENGTH} {ms(DAY + 1)!r}"),
    (lambda: of(window=7, timezone=BERLIN), f"JobSpec.window {LENGTH} 7"),
    (lambda: of(window="1d", slide="1h", timezone=BERLIN), f"JobSpec.slide {LENGTH} '1h'"),
    (lambda: of(window="1d", window_offset="4h", timezone=BERLIN), f"JobSpec.window_offset {LENGTH} '4h'"),
    (lambda: of(window="1mo", slide="7d"), "JobSpec.slide must be in months if window is, got '7d'"),
    (
        lambda: of(window="P1M", window_offset="14d", timezone=BERLIN),
        "JobSpec.window_offset must be in months if window is, got '14d'",
    ),
    (
        lambda: of(window="30d", slide="1mo", timezone=BERLIN),
        "JobSpec.slide must be in days if window is, got '1mo'",
    ),
    (lambda: of(window="30d", slide="1mo"), f"JobSpec.slide {DURATION} '1mo'"),
    (lambda: of(allowed_lateness="1mo"), f"JobSpec.allowed_lateness {DURATION} '1mo'"),
    (lambda: of(allowed_lateness="P1M"), f"JobSpec.allowed_lateness {DURATION} 'P1M'"),
    (lambda: of(window="0d", timezone=BERLIN), "CalendarWindows.size must be an integer in [1, 365], got 0"),
    (lambda: of(window="53w", timezone=BERLIN), "CalendarWindows.size must be an integer in [1, 365], got 371"),
    (lambda: of(window="13mo"), "CalendarWindows.size must be an integer in [1, 12], got 13"),
    (
        lambda: of(window="1w", slide="8d", timezone=BERLIN),
        "CalendarWindows.slide must be an integer in [1, 7], got 8",
    ),
    (
        lambda: of(window="1w", window_offset="1w", timezone=BERLIN),
        "CalendarWindows.offset must be an integer in [0, 6], got 7",
    ),
    (
        lambda: of(window=None, timezone=BERLIN),
        "JobSpec.timezone needs JobSpec.window, got none",
    ),
    (lambda: of(window="1 hour"), f"JobSpec.window {DURATION} '1 hour'"),
    (lambda: of(slide="x"), f"JobSpec.slide {DURATION} 'x'"),
    (lambda: of(window_offset="-1s"), f"JobSpec.window_offset {DURATION} '-1s'"),
    (lambda: of(allowed_lateness=""), f"JobSpec.allowed_lateness {DURATION} ''"),
    (lambda: of(early_every="1"), f"JobSpec.early_every {DURATION} '1'"),
    (lambda: of(future_skew="s"), f"JobSpec.future_skew {DURATION} 's'"),
    (lambda: of(lateness_slack="1.5h"), f"JobSpec.lateness_slack {DURATION} '1.5h'"),
    (
        lambda: of(window=1.5),
        "JobSpec.window must be a text with a unit such as 90s, 15m, 1h or 1d, got 1.5",
    ),
    (lambda: of(window=ms(0)), f"Windows.size must be an integer in [1, {YEAR}], got 0"),
    (lambda: of(window="366d"), f"Windows.size must be an integer in [1, {YEAR}], got {366 * DAY}"),
    (lambda: of(slide="0s"), f"Windows.slide must be an integer in [1, {HOUR}], got 0"),
    (lambda: of(slide="2h"), f"Windows.slide must be an integer in [1, {HOUR}], got {2 * HOUR}"),
    (lambda: of(window_offset="1h"), f"Windows.offset must be an integer in [0, {HOUR - 1}], got {HOUR}"),
    (lambda: of(slide="1m", window_offset="1m"), f"Windows.offset must be an integer in [0, {MINUTE - 1}], got 60000"),
    (lambda: of(window_offset=ms(-1)), f"Windows.offset must be an integer in [0, {HOUR - 1}], got -1"),
    (
        lambda: of(window=None, slide="1m"),
        "JobSpec.slide needs JobSpec.window, got none",
    ),
    (
        lambda: of(window=None, slide="1m", window_offset="1s"),
        "JobSpec.slide needs JobSpec.window, got none",
    ),
    (
        lambda: of(window=Windows(size=7), window_offset=ms(1)),
        "JobSpec.window must be a duration where window_offset is given, got a window object, which defines its own",
    ),
    (lambda: of(allowed_lateness=ms(-1)), f"JobSpec.allowed_lateness must be an integer in [0, {CENTURY}], got -1"),
    (
        lambda: fields(allowed_lateness="1h"),
        f"JobSpec.allowed_lateness must be an integer in [0, {CENTURY}], got '1h'",
    ),
    (lambda: of(future_skew=ms(-1)), f"JobSpec.future_skew must be an integer in [0, {CENTURY}], got -1"),
    (lambda: of(lateness_slack=ms(0)), f"JobSpec.lateness_slack must be an integer in [1, {CENTURY}], got 0"),
    (
        lambda: of(lateness_slack="36526d"),
        f"JobSpec.lateness_slack must be an integer in [1, {CENTURY}], got {36_526 * DAY}",
    ),
    (lambda: of(early_every=ms(999)), f"JobSpec.early_every must be an integer in [1000, {CENTURY}], got 999"),
    (lambda: of(early_every=ms(1_500)), "JobSpec.early_every must be a whole number of seconds, got 1500 ms"),
    (lambda: of(late_every=ms(1_500)), "JobSpec.late_every must be a whole number of seconds, got 1500 ms"),
    *(
        (
            lambda share=share: of(max_rejected_share=share),
            f"JobSpec.max_rejected_share must be a number in [0, 1] or null, got {share!r}",
        )
        for share in (-0.01, 1.01, float("nan"), True, "0.5")
    ),
    *(
        (
            lambda confidence=confidence: of(confidence=confidence),
            f"JobSpec.confidence must be a number between 0 and 1, at most 0.999999, such as 0.95, got {confidence!r}",
        )
        for confidence in (0, 1, 1.0, 1.5, 95, -0.1, 0.9999999, float("nan"), True, "0.9")
    ),
    *(
        (lambda share=share: of(liars=share), f"JobSpec.liars must be a number in [0, 1] or null, got {share!r}")
        for share in (-0.01, 1.01, float("nan"), True, "0.5")
    ),
    (lambda: of(liars=1), "JobSpec.liars must have a share in [0, 1), got 1"),
    (
        lambda: of(collections=[KRR, OPEN], candidates=["a"], liars=0.01),
        "JobSpec.liars needs a list of all values, each with a symbol of its own, got collection 'open'",
    ),
    (
        lambda: of(collections=[DELAYS], liars=0.01),
        "JobSpec.liars needs values that are not numbers, got collection 'delays'",
    ),
    (
        lambda: of(borrow=True),
        "JobSpec.borrow needs JobSpec.by, got none",
    ),
    (
        lambda: of(collections=[BY_ARM], by=["arm"], borrow=True, estimator="em"),
        "JobSpec.borrow needs an estimator whose shares are a continuous function of the unbiased ones, such as eb or "
        "projected, got collection 'krr' and 'em'",
    ),
    (lambda: of(min_reports=0), f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got 0"),
    (lambda: of(show=0), f"JobSpec.show must be an integer in [1, {1 << 20}], got 0"),
    (lambda: of(show=(1 << 20) + 1), f"JobSpec.show must be an integer in [1, {1 << 20}], got {(1 << 20) + 1}"),
    (lambda: of(min_reports=True), f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got True"),
    (lambda: of(min_reports="5"), f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got '5'"),
    (
        lambda: of(deduplicate=True, deduplicate_parts=0),
        f"JobSpec.deduplicate_parts must be an integer in [1, {MAX_PARTS}], got 0",
    ),
    (
        lambda: of(deduplicate=True, deduplicate_parts=MAX_PARTS + 1),
        f"JobSpec.deduplicate_parts must be an integer in [1, {MAX_PARTS}], got {MAX_PARTS + 1}",
    ),
    (lambda: of(deduplicate="yes"), "JobSpec.deduplicate must be true or false, got 'yes'"),
    (lambda: of(deduplicate=1), "JobSpec.deduplicate must be true or false, got 1"),
    (lambda: of(bit_patterns=0), "JobSpec.bit_patterns must be true or false, got 0"),
    (lambda: of(smooth="no"), "JobSpec.smooth must be true or false, got 'no'"),
    (
        lambda: of(smooth=True, alarm_every=0),
        f"JobSpec.alarm_every must be an integer in [1, {1 << 31}], got 0",
    ),
    (
        lambda: of(smooth=True, show=2),
        "JobSpec.show must be at least 3, all values of collection 'krr', where smooth is true, got 2",
    ),
    (
        lambda: of(collections=[ASKED["1d"]], window="12h"),
        "JobSpec.window must consist of whole client windows of collection 'krr', such as window 1d, got window 12h",
    ),
    (
        lambda: of(collections=[ASKED["weeks"]], window="2w", slide="1d", window_offset="12h"),
        "JobSpec.window must consist of whole client windows of collection 'krr', such as window 1w and "
        "timezone Europe/Berlin, got window 14d, slide 1d, window_offset 12h",
    ),
    (
        lambda: of(collections=[ASKED["berlin"]], window="1d"),
        "JobSpec.window must consist of whole client windows of collection 'krr', such as window 1d and "
        "timezone Europe/Berlin, got window 1d",
    ),
    (lambda: of(alarm_every=50), "JobSpec.alarm_every needs JobSpec.smooth, got none"),
    (
        lambda: of(smooth=True, window=None),
        "JobSpec.smooth needs JobSpec.window, got none",
    ),
    (
        lambda: of(smooth=True, slide="15m"),
        "JobSpec.smooth cannot be combined with JobSpec.slide, which makes windows overlap, got both",
    ),
    (lambda: of(discover=1), "JobSpec.discover must be true or false, got 1"),
    (
        lambda: of(collections=[KRR, OPEN], discover=True),
        "JobSpec.discover needs a collection with the alphabet prefixes, got closed, hashed",
    ),
    (lambda: of(bounded=1), "JobSpec.bounded must be true, false or null, got 1"),
    (lambda: of(bounded="yes"), "JobSpec.bounded must be true, false or null, got 'yes'"),
    (lambda: of(release="once"), 'JobSpec.release must be "corrected" or "final", got \'once\''),
    (lambda: of(release=["final"]), 'JobSpec.release must be "corrected" or "final", got [\'final\']'),
    (
        lambda: of(estimator="best"),
        "estimator.id must be one of eb, em, empirical, ml, normalized, projected, threshold, got 'best'",
    ),
    (
        lambda: of(collections=[KRR, RAPPOR], estimator="ml"),
        "estimator 'ml' does not support collection 'rappor': there is no closed form for rappor; use the estimator em",
    ),
    *(
        (
            lambda wrong=wrong: of(collections=[DELAYS], limits=wrong),
            f"JobSpec.limits must be a list of numbers, or a text such as 30,60, got {wrong!r}",
        )
        for wrong in (5, "30;60", [True], ["30"], {})
    ),
    *(
        (
            lambda wrong=wrong: of(collections=[DELAYS], limits=wrong),
            f"JobSpec.limits must be a list of numbers, or a text such as 30,60, got {parts}",
        )
        for wrong, parts in (("30,nan", "(30.0, nan)"), ([math.inf], "(inf,)"))
    ),
    (lambda: of(limits=[15]), "JobSpec.numbers need the alphabet ordered, got closed"),
    (
        lambda: of(collections=[DELAYS], limits="15,50"),
        "JobSpec.limits must be numbers from 15.0 to 45.0, between inner edges, got 50.0",
    ),
    (
        lambda: of(collections=[DELAYS], quantiles=[0.5, 1]),
        "JobSpec.quantiles must be numbers in (0, 1), got 1.0",
    ),
    (lambda: of(candidates=5), "candidates must be a list of texts, got 5"),
    (
        lambda: of(candidates={"a": 1}),
        "JobSpec.candidates must be a list of texts or the path of a file, got {'a': 1}",
    ),
    *[
        (
            lambda wrong=wrong: JobSpec(collections=(KRR,), candidates=wrong),
            "JobSpec.candidates must be a tuple of different texts in Unicode NFC, as JobSpec.of makes it, got "
            f"{wrong!r}",
        )
        for wrong in (("e\N{COMBINING ACUTE ACCENT}",), ("a", "a"), ("a ",), "ab", 5, ["a"], (1,), ())
    ],
    (lambda: of(candidates=[]), "candidates must have at least 1 entry, got 0"),
    (lambda: of(candidates=["a", 1]), "candidates must be a list of texts, got ('a', 1)"),
    (lambda: of(candidates=["a", "a"]), "candidates must not repeat an entry (in Unicode NFC), got 'a' twice"),
    *[
        (
            lambda wrong=wrong: of(candidates=["a", wrong]),
            "candidates must not begin or end with white space, got such a value at position 1",
        )
        for wrong in ("bee ", " bee", "bee\r", "\N{NO-BREAK SPACE}bee", "  ", "bee\n")
    ],
    (
        lambda: of(candidates=["a", "b", "ä" * 2049]),
        "candidates must be at most 4096 bytes of UTF-8 each, got 4098 at position 2",
    ),
    # what is allowed alone, but not together
    (
        lambda: of(release="final", early_every="1m"),
        "JobSpec.early_every cannot be combined with JobSpec.release=final, got both",
    ),
    (
        lambda: of(release="final", late_every="0s"),
        "JobSpec.late_every cannot be combined with JobSpec.release=final, got both",
    ),
    (
        lambda: of(bounded=True, late_every="2m"),
        "JobSpec.late_every needs an unbounded input, got a bounded one",
    ),
    (
        lambda: of(bounded=True, early_every="1m"),
        "JobSpec.early_every needs an unbounded input, got a bounded one",
    ),
    (
        lambda: of(bounded=False, window=None),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
    (
        lambda: of(deduplicate_parts=8),
        "JobSpec.deduplicate_parts needs JobSpec.deduplicate, got none",
    ),
    (
        lambda: of(deduplicate_by="fingerprints"),
        "JobSpec.deduplicate_by needs JobSpec.deduplicate, got none",
    ),
    (
        lambda: of(deduplicate=True, deduplicate_by="ids"),
        'JobSpec.deduplicate_by must be "reports" or "fingerprints", got \'ids\'',
    ),
    (lambda: of(by="arm,arm"), "JobSpec.by must name each dimension once, got arm, arm"),
    (
        lambda: of(by=["arm"]),
        "JobSpec.by must name dimensions that a collection of the job has (none has any), got arm",
    ),
]
