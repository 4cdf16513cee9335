"""Refusals of the specification of a job: calls and their sentences."""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Any

from tests.support.messages_cases import KRR, RAPPOR, collection
from tests.support.refusals.tables import Refusal, rows_in
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


LENGTH = "must be days, weeks or months such as 1d, 1w or 1mo if windows follow a calendar, got"
BERLIN = "Europe/Berlin"
KEYS = ", ".join(SPEC_FIELDS)
REFUSED: list[Refusal] = [
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
        lambda: of(collections=[KRR, KRR]),
        "collections of one job must have different fingerprints, got 'krr' version 1 and 'krr' version 1 with the "
        "same one",
    ),
    (
        lambda: of(collections=[KRR, Collection.from_json(RAPPOR.to_json() | {"id": "krr"})]),
        "collections of one job must differ in id or version, got 'krr' version 1 twice",
    ),
    (
        lambda: fields(partial_before="2026-01-31T00:00:00Z"),
        f"JobSpec.partial_before must be an integer in [{MIN_EVENT_TIME}, {MAX_EVENT_TIME - 1}], got "
        "'2026-01-31T00:00:00Z'",
    ),
    (
        lambda: without_time_zones(lambda: of(window="1d", timezone=BERLIN)),
        "CalendarWindows.timezone needs a time-zone database, such as the package tzdata, got a machine without one",
    ),
    (
        lambda: CalendarWindows(size=1, unit="w", timezone=BERLIN),
        "CalendarWindows.unit must be one of d, mo, got 'w'",
    ),
    (lambda: of(window=ms(DAY + 1), timezone=BERLIN), f"JobSpec.window {LENGTH} {ms(DAY + 1)!r}"),
    (lambda: of(window=ms(0)), "Windows.size must be a duration from 1ms to 365d, got 0s"),
    (lambda: of(window_offset=ms(-1)), "Windows.offset must be a duration from 0s to less than 1h, got -1ms"),
    (
        lambda: of(window=Windows(size=7), window_offset=ms(1)),
        "JobSpec.window must be a duration where window_offset is given, got a window object, which defines its own",
    ),
    (lambda: of(allowed_lateness=ms(-1)), "JobSpec.allowed_lateness must be a duration from 0s to 36525d, got -1ms"),
    (lambda: of(future_skew=ms(-1)), "JobSpec.future_skew must be a duration from 0s to 36525d, got -1ms"),
    (lambda: of(lateness_slack=ms(0)), "JobSpec.lateness_slack must be a duration from 1ms to 36525d, got 0s"),
    (lambda: of(early_every=ms(999)), "JobSpec.early_every must be a duration from 1s to 36525d, got 999ms"),
    (lambda: of(early_every=ms(1_500)), "JobSpec.early_every must be a whole number of seconds, got 1500 ms"),
    (lambda: of(late_every=ms(1_500)), "JobSpec.late_every must be a whole number of seconds, got 1500 ms"),
    (
        lambda: of(collections=[KRR, OPEN], candidates=["a"], liars=0.01),
        "JobSpec.liars needs a list of all values, each with a symbol of its own, got collection 'open'",
    ),
    (
        lambda: of(collections=[DELAYS], liars=0.01),
        "JobSpec.liars needs values that are not numbers, got collection 'delays'",
    ),
    (
        lambda: of(collections=[BY_ARM], by=["arm"], borrow=True, estimator="em"),
        "JobSpec.borrow needs an estimator whose shares are a continuous function of the unbiased ones, such as eb or "
        "projected, got collection 'krr' and 'em'",
    ),
    (
        lambda: of(deduplicate=True, deduplicate_parts=0),
        f"JobSpec.deduplicate_parts must be an integer in [1, {MAX_PARTS}], got 0",
    ),
    (
        lambda: of(deduplicate=True, deduplicate_parts=MAX_PARTS + 1),
        f"JobSpec.deduplicate_parts must be an integer in [1, {MAX_PARTS}], got {MAX_PARTS + 1}",
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
    (
        lambda: of(collections=[KRR, OPEN], discover=True),
        "JobSpec.discover needs a collection with the alphabet prefixes, got closed, hashed",
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
    (
        lambda: of(collections=[DELAYS], limits="15,50"),
        "JobSpec.limits must be numbers from 15.0 to 45.0, between inner edges, got 50.0",
    ),
    (
        lambda: of(collections=[DELAYS], quantiles=[0.5, 1]),
        "JobSpec.quantiles must be numbers in (0, 1), got 1.0",
    ),
    *[
        (
            lambda wrong=wrong: JobSpec(collections=(KRR,), candidates=wrong),
            "JobSpec.candidates must be a tuple of different texts in Unicode NFC, as JobSpec.of makes it, got "
            f"{wrong!r}",
        )
        for wrong in (("e\N{COMBINING ACUTE ACCENT}",), ("a", "a"), ("a ",), "ab", 5, ["a"], (1,), ())
    ],
    (
        lambda: of(candidates=["a", "b", "ä" * 2049]),
        "candidates must be at most 4096 bytes of UTF-8 each, got 4098 at position 2",
    ),
    # what is allowed alone, but not together
    (lambda: fields(collections=("krr.json",)), "JobSpec.collections must be a tuple of Collection, got ('krr.json',)"),
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
    *rows_in(__file__, lambda name, values: fields(**values) if name == "JobSpec" else of(**values)),
]
