"""Refusals of Beam's windows in the specification of a job: calls and their sentences."""

from __future__ import annotations

from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from apache_beam.utils.timestamp import Duration, Timestamp

from tests.support.refusals.jobs.specification import of
from tests.support.refusals.tables import Refusal

REFUSED: list[Refusal] = [
    (
        lambda: of(window=GlobalWindows(), window_offset="1s"),
        "JobSpec.window must be a duration where window_offset is given, got a window object, which defines its own",
    ),
    (
        lambda: of(window=FixedWindows(60), slide="1m"),
        "JobSpec.window must be a duration where slide is given, got a window object, which defines its own",
    ),
    (lambda: of(window=Sessions(60)), "windows must be fixed or sliding, got Sessions"),
    (
        lambda: of(window=FixedWindows(Duration(micros=1_500))),
        "windows must be whole milliseconds, got 1500 microseconds",
    ),
    (
        lambda: of(window=SlidingWindows(60, Duration(micros=1_001))),
        "windows must be whole milliseconds, got 1001 microseconds",
    ),
    (
        lambda: of(window=FixedWindows(60, Timestamp(micros=1))),
        "windows must be whole milliseconds, got 1 microseconds",
    ),
    (lambda: of(window=SlidingWindows(60, 120)), "Windows.slide must be a duration from 1ms to 1m, got 2m"),
    (
        lambda: of(bounded=False, window=GlobalWindows()),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
]
