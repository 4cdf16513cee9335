"""Windows of a specification and windows of Beam, and what a specification withholds in its panes."""

from __future__ import annotations

from typing import Any

import pytest
from apache_beam.transforms.window import FixedWindows, GlobalWindows, SlidingWindows
from apache_beam.utils.timestamp import Duration
from hypothesis import given

from tests.support.drawn_windows import windows
from tests.support.refusals.jobs.specification import (
    ASKED,
    MINUTE,
    of,
)
from uldp_transforms import EstimateDistribution, Windows
from uldp_transforms.beam.runtime.beam_windows import as_duration, beam_periods, beam_windows, windows_of_beam
from uldp_transforms.beam.runtime.panes import Withholding
from uldp_transforms.ldp import SpecError
from uldp_transforms.spec.spec_fields import (
    FINAL,
    MIN_REPORTS,
)
from uldp_transforms.windows import (
    BasePeriods,
)


def test_one_window_for_everything_is_refused_where_clients_have_windows() -> None:
    """When it would be estimated: what stored counts are windows of is not known before."""
    with pytest.raises(SpecError, match=r"such as window 1d and timezone Europe/Berlin, got none$"):
        EstimateDistribution(of(collections=[ASKED["berlin"]], window=None))


@pytest.mark.parametrize(
    ("window_fn", "expected"),
    [
        (FixedWindows(60), Windows(size=MINUTE)),
        (FixedWindows(60, 10), Windows(size=MINUTE, offset=10_000)),
        (FixedWindows(60, -10), Windows(size=MINUTE, offset=50_000)),
        (FixedWindows(Duration(micros=7_000)), Windows(size=7)),
        (SlidingWindows(60, 20), Windows(size=MINUTE, slide=20_000)),
        (SlidingWindows(60, 20, 5), Windows(size=MINUTE, slide=20_000, offset=5_000)),
        (SlidingWindows(60, 20, 65), Windows(size=MINUTE, slide=20_000, offset=5_000)),
        (SlidingWindows(60, 60, 5), Windows(size=MINUTE, slide=MINUTE, offset=5_000)),
        (GlobalWindows(), None),
    ],
)
def test_windows_of_beam_are_understood(window_fn: Any, expected: Windows | None) -> None:
    assert windows_of_beam(window_fn) == expected
    assert of(window=window_fn).windows == expected
    if expected is None or expected.overlap or isinstance(window_fn, FixedWindows):
        assert beam_windows(expected) == window_fn


def test_windows_that_touch_are_fixed_windows_of_beam() -> None:
    assert beam_windows(Windows(size=MINUTE, slide=MINUTE, offset=7)) == FixedWindows(60, 0.007)
    assert beam_periods(BasePeriods(7, 3)) == FixedWindows(0.007, 0.003)
    assert as_duration(1) == Duration(micros=1_000)


@given(windows)
def test_windows_go_to_beam_and_back(ours: Windows) -> None:
    again = windows_of_beam(beam_windows(ours))
    assert again is not None
    assert (again.size, again.step, again.offset) == (ours.size, ours.step, ours.offset)


def test_what_withholds_numbers_is_as_the_specification_says() -> None:
    spec = of(min_reports=7, bounded=False, window="1h", release=FINAL, partial_before="1970-01-01T00:00:01Z")
    assert Withholding.of(spec) == Withholding(7, spec.release_delay, 1_000)
    assert Withholding.of(of(bounded=True)) == Withholding(MIN_REPORTS, None, None)
