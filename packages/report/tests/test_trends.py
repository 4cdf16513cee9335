"""Charts over the windows: one scale, dates on the axis, windows that stand out, and what changed where."""

from __future__ import annotations

import datetime
import itertools
import math

import numpy as np
import pytest

from uldp_transforms.rows.figures.figure import Figure, Trend, table_of, trend_of, unlisted_share
from uldp_transforms_report.facts import Alarm, WindowLine
from uldp_transforms_report.trends.alarm_marks import changes_of
from uldp_transforms_report.trends.common_scales import scale_of
from uldp_transforms_report.trends.merged_windows import merged, step_of
from uldp_transforms_report.trends.smooth_bands import smooth_of
from uldp_transforms_report.trends.time_axis import labels_of
from uldp_transforms_report.trends.trend_charts import common_scale, trend_chart

NAN = math.nan


def figure(name: str = "a", is_share: bool = True, unit: str = "", **more: float | None) -> Figure:
    given: dict[str, float | None] = {"value": 0.2, "low": 0.1, "high": 0.3} | more
    return Figure(name=name, is_share=is_share, unit=unit, **given)  # type: ignore[arg-type]  # numbers by their names


def trend(*smoothed: tuple[float, float, float], of: Figure | None = None, sure: tuple[float, float] = (0, 1)) -> Trend:
    """Smoothed numbers with their intervals, in windows whose own intervals exclude none of them."""
    shown = of or figure()
    names = ("smoothed", "smoothed_low", "smoothed_high")
    own = {"sure_low": sure[0], "sure_high": sure[1]}
    return trend_of(shown, table_of([figure(**own, **dict(zip(names, each))) for each in smoothed]))


# ---------------------------------------------------------------------------------------------------------- scales


@pytest.mark.parametrize(
    ("numbers", "is_share", "ticks"),
    [
        ([0.083], True, [0, 0.05, 0.1]),
        ([0.2, 0.1], True, [0, 0.05, 0.1, 0.15, 0.2]),
        ([0.97, NAN], True, [0, 0.5, 1]),
        ([0.0003], True, [0, 0.0001, 0.0002, 0.0003]),
        ([-3.0, 12.0], False, [-5, 0, 5, 10, 15]),
        ([101.0, 104.0], False, [101, 102, 103, 104]),
        ([7.0], False, [6, 8]),
        ([0.0], False, [0, 0.5]),
        ([NAN], True, [0, 0.5]),
        ([], False, [0, 0.5, 1]),
    ],
)
def test_an_axis_has_round_numbers_and_all_that_is_drawn(
    numbers: list[float], is_share: bool, ticks: list[float]
) -> None:
    scale = scale_of([np.array(numbers)], is_share)
    known = [number for number in numbers if not math.isnan(number)]
    assert all(scale.low <= number <= scale.high for number in known)
    assert scale.ticks[0] == pytest.approx(scale.low) and scale.ticks[-1] == pytest.approx(scale.high)
    assert 2 <= len(scale.ticks) <= 6
    if not is_share and len(known) == 1:
        return
    assert scale.ticks == pytest.approx(ticks)


def test_charts_beside_each_other_have_one_scale() -> None:
    """That of the largest number that one of them draws; only shares begin at 0."""
    small, large = trend((0.02, 0.01, 0.03)), trend((0.5, 0.4, 0.61))
    assert common_scale([small, large]).ends == "0 0.8"
    assert common_scale([large]).ends == "0 0.8" and common_scale([small]).ends == "0 0.3"
    minutes = figure(is_share=False, value=20.0, low=18.0, high=22.0, sure_low=18.0, sure_high=22.0)
    assert common_scale([trend_of(minutes, table_of([minutes]))]).ends == "18 22"


# ------------------------------------------------------------------------------------------------------------ times


def labels(first: str, number: int, **step: int) -> list[str]:
    begin = datetime.datetime.fromisoformat(first)
    moments = [begin + at * datetime.timedelta(**step) for at in range(number)]
    found = labels_of(moments)
    assert [*found] == sorted(found) and set(found) <= {moments[0], *found} and [*found][-1] <= moments[-1]
    return [*found.values()]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (labels("2001-02-14", 31, days=1), ["14 Feb 2001", "28 Feb", "14 Mar"]),
        (labels("2001-02-14", 1, days=1), ["14 Feb 2001"]),
        (labels("2001-02-14", 3, days=1), ["14 Feb 2001", "15 Feb", "16 Feb"]),
        (labels("2001-12-20", 31, days=1), ["20 Dec 2001", "3 Jan 2002", "17 Jan"]),
        (labels("2001-01-01", 52, days=7), ["1 Jan 2001", "Jul"]),
        (labels("2001-02-14", 365, days=1), ["14 Feb 2001", "Aug", "Feb 2002"]),
        (labels("2001-02-14", 3650, days=1), ["14 Feb 2001", "2006", "2011"]),
        (labels("2001-02-14T08:00", 25, hours=1), ["14 Feb 2001, 08:00", "15 Feb"]),
        (labels("2001-02-14T08:10", 9, minutes=10), ["14 Feb 2001, 08:10", "09:00"]),
    ],
)
def test_an_axis_begins_with_a_whole_date_and_goes_on_with_round_moments(found: list[str], expected: list[str]) -> None:
    assert found == expected


def test_no_windows_have_no_labels() -> None:
    assert labels_of([]) == {}


# -------------------------------------------------------------------------------------------------- standing out


def test_a_window_that_its_neighbours_contradict_has_a_line_beside_the_band() -> None:
    """The line is its whole interval, and the band goes on as wide as beside it."""
    usual, high, low = (0.3, 0.28, 0.32), (0.3, 0.28, 0.45), (0.3, 0.1, 0.32)
    of = trend(*[usual] * 5, high, *[usual] * 5, low, usual)
    smooth = smooth_of(of)
    assert smooth.low == pytest.approx(np.full(13, 0.28)) and smooth.high == pytest.approx(np.full(13, 0.32))
    assert np.flatnonzero(np.isfinite(smooth.alone_low)).tolist() == [5, 11]
    assert (smooth.alone_low[5], smooth.alone_high[5]) == (0.28, 0.45)
    assert (smooth.alone_low[11], smooth.alone_high[11]) == (0.1, 0.32)
    drawn = trend_chart(of, windows(13), "UTC")["layer"]
    alone = [one["mark"]["type"] for one in drawn if "alone_low" in str(one.get("transform"))]
    assert alone == ["rule", "point"]


def test_intervals_that_grow_slowly_stand_out_nowhere() -> None:
    """Nor do longer ones that last, such as those around a lasting change, but at their ends."""
    of = trend(*[(0.5, 0.5 - at / 100, 0.5 + at / 100) for at in range(10, 30)])
    assert np.isnan(smooth_of(of).alone_low).all()
    wide = trend(*[(0.5, 0.48, 0.52)] * 8, *[(0.5, 0.4, 0.6)] * 8)
    assert np.isnan(smooth_of(wide).alone_low)[9:].all()


def test_the_band_is_never_longer_than_an_interval() -> None:
    numbers = np.random.default_rng(5).uniform(0.01, 0.2, size=(40, 2))
    of = trend(*[(0.5, 0.5 - low, 0.5 + high) for low, high in numbers.tolist()])
    smooth = smooth_of(of)
    assert (smooth.low >= of.smoothed_low).all() and (smooth.high <= of.smoothed_high).all()
    assert (smooth.low <= of.smoothed).all() and (of.smoothed <= smooth.high).all()


def test_nothing_is_drawn_of_what_is_not_known() -> None:
    """Of no number is anything said; a window that excludes the smoothed interval ends the band."""
    nothing = smooth_of(trend((NAN, NAN, NAN), (NAN, NAN, NAN)))
    assert all(np.isnan(column).all() for column in nothing)
    assert np.isnan(smooth_of(trend((0.3, 0.2, 0.4), sure=(0.5, 0.6))).low).all()


# ----------------------------------------------------------------------------------------------------- many windows


def test_points_of_many_windows_span_all_of_them() -> None:
    assert [step_of(number) for number in (0, 1, 400, 401, 800, 3650)] == [1, 1, 1, 2, 2, 10]
    columns = {name: np.array([1.0, 3, NAN, 5, 6]) for name in ("low", "alone_high", "value")}
    found = merged(columns | {"truth": np.full(5, NAN)}, 2)
    assert [found[name].tolist() for name in columns] == [[1, 5, 6], [3, 5, 6], [2, 5, 6]]
    assert np.isnan(found["truth"]).all() and len(found["truth"]) == 3


def test_a_chart_of_ten_years_has_few_points() -> None:
    """And no lines of single windows, which would cover it."""
    usual = [(0.3, 0.28, 0.32)] * 9
    of = trend(*[*usual, (0.3, 0.28, 0.45)] * 41)
    drawn = trend_chart(of, windows(410), "UTC")
    assert len(drawn["data"]["values"]) == 205
    assert [layer["mark"]["type"] for layer in drawn["layer"]] == ["area", "area", "line"]


# --------------------------------------------------------------------------------------------------------- changes


def windows(number: int) -> list[WindowLine]:
    begin = datetime.datetime(2001, 2, 14)
    days = [begin + datetime.timedelta(days=at) for at in range(number + 1)]
    more = {"status": "ok", "num_reports": 9, "is_open": False, "holds_always": False}
    return [
        WindowLine(
            start=f"{day:%Y-%m-%dT00:00:00Z}",
            end=f"{end:%Y-%m-%dT00:00:00Z}",
            name=f"day {at}",
            unexplained=unlisted_share({}, None),
            **more,  # type: ignore[arg-type]  # attributes by their names
        )
        for at, (day, end) in enumerate(itertools.pairwise(days))
    ]


FIGURES = {
    "mean": "The mean moved by +1.25 (+0.5 to +2).",
    "p90": "Quantiles moved: p50 from 3.2 to 4.1, p90 from below 10 to 12.5. Shares of numbers moved, in percentage "
    "points: below 5 -3.00 (-4.00 to -2.00).",
    "p50": "Quantiles moved: p50 from 3.2 to 4.1.",
}


@pytest.mark.parametrize(
    ("name", "sentence", "expected"),
    [
        ("DFW", "Shares moved, in percentage points: 'LGA' -1.66 (-2 to -1), 'DFW' +1.00 (+0 to +2).", "+1.00 points"),
        ("LGA", "Shares moved, in percentage points: 'LGA' -1.66 (-2.56 to -0.77) over 2 windows.", "-1.66 points"),
        ("L.A", "Shares moved, in percentage points: 'LGA' -1.66 (-2.56 to -0.77).", None),
        ("mean", f"Shares moved, in percentage points: 'x' +1 (+1 to +1). {FIGURES['mean']}", None),
    ],
)  # fmt: skip
def test_a_change_of_a_share_is_named_where_it_was_found(name: str, sentence: str, expected: str | None) -> None:
    alarms = [
        Alarm(window="day 1", group="", name="change", sentence=sentence),
        Alarm(window="day 2", group="country=DE", name="change", sentence=sentence),
        Alarm(window="day 0", group="", name="fit", sentence=sentence),
    ]
    found = changes_of(trend(*[(0.3, 0.2, 0.4)] * 3, of=figure(name)), windows(3), alarms)
    assert found == ({1: expected} if expected else {})


@pytest.mark.parametrize(
    ("name", "expected"), [("mean", "+1.25 min"), ("p90", "from below 10 to 12.5 min"), ("p50", "from 3.2 to 4.1 min")]
)
def test_a_change_of_a_figure_is_named_where_it_was_found(name: str, expected: str) -> None:
    alarms = [Alarm(window="day 1", group="", name="change", sentence=FIGURES[name])]
    of = trend(*[(0.3, 0.2, 0.4)] * 3, of=figure(name, is_share=False, unit="min"))
    assert changes_of(of, windows(3), alarms) == {1: expected}


def test_changes_have_a_dotted_line_and_words_beside_it() -> None:
    """On the side where there is room; those close to each other stand below each other."""
    of = trend(*[(0.3, 0.2, 0.4)] * 9)
    drawn = trend_chart(of, windows(9), "UTC", changes={7: "+2 points", 1: "-1 points"})
    rule, text = drawn["layer"][-2:]
    data = rule["data"]
    assert [(row["change"], row["is_late"], row["below"]) for row in data["values"]] == [
        ("-1 points", False, 0),
        ("+2 points", True, 11),
    ]
    assert rule["mark"]["strokeDash"] == [2, 3] and text["mark"]["type"] == "text"
    assert not [layer for layer in trend_chart(of, windows(9), "UTC")["layer"] if layer["mark"]["type"] == "text"]
