"""Charts of a page as specifications: what is drawn, from which numbers, on which axes; without drawing them."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from types import SimpleNamespace
from typing import Any
from unittest import mock

import altair
import numpy as np
import pytest

from tests.support import report_rows as rows
from tests.support.cases import golden
from uldp_transforms.ldp.alphabets.noun import Noun
from uldp_transforms.rows.figures.figure import Figure, Trend, table_of, trend_of, unlisted_share
from uldp_transforms.rows.figures.figure_words import NumberFormat
from uldp_transforms.windows import moment_of
from uldp_transforms_planner.evaluate.trials import Outcome
from uldp_transforms_report import charts, error_charts
from uldp_transforms_report.facts import WindowLine
from uldp_transforms_report.levels import USUAL
from uldp_transforms_report.numbers import number_charts
from uldp_transforms_report.numbers.number_facts import Bar, NumberPart
from uldp_transforms_report.trends import picture as picture_of
from uldp_transforms_report.trends import trend_charts
from uldp_transforms_report.trends.window_chart import window_chart

NAN, DAY = math.nan, 86_400_000


def line(at: int, **more: Any) -> WindowLine:
    span = rows.span(at)
    given: dict[str, Any] = {
        "start": span["window_start"],
        "end": span["window_end"],
        "name": f"day {at}",
        "status": "ok",
    }
    mass = {"unexplained_mass": 0.5, "unexplained_low": 0.4, "unexplained_high": 0.6}
    given |= {"num_reports": 1000, "unexplained": unlisted_share(mass, more.pop("unlisted", None))}
    return WindowLine(**given | {"is_open": False, "holds_always": False} | more)


def entry(value: str = "a", share: float = 0.2, truth: float | None = None) -> Figure:
    return Figure(name=value, is_share=True, value=share, low=share - 0.1, high=share + 0.1, truth=truth)


def trend(number: int = 3, **arrays: Any) -> Trend:
    share = np.linspace(0.2, 0.4, number)
    given: dict[str, Any] = {"value": share, "low": share - 0.1, "high": share + 0.1} | arrays
    return trend_with(entry(), number, **{"sure_low": given["low"], "sure_high": given["high"]} | given)


def trend_with(of: Figure, number: int, **arrays: Any) -> Trend:
    return dataclasses.replace(trend_of(of, table_of([None] * number)), **arrays)


def layers_of(chart: Any) -> list[tuple[str, str, str | None]]:
    """Mark, its column, and the other end of what it spans."""
    found = []
    for layer in chart["layer"]:
        y, y2 = layer["encoding"].get("y", {}), layer["encoding"].get("y2", {})
        found.append((layer["mark"]["type"], y.get("field", ""), y2.get("field")))
    return found


def data_of(chart: Any) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = chart["data"]["values"]
    return values


BAND, ALONE, POINT = ("area", "low", "high"), ("rule", "low", "high"), ("point", "value", None)
SMOOTHED = [("area", "smoothed_low", "smoothed_high"), ("line", "smoothed", None)]


@pytest.mark.parametrize(("number", "layers"), [(60, [ALONE, POINT]), (61, [BAND, ("line", "value", None)])])
def test_of_many_windows_a_line_is_drawn(number: int, layers: list[Any]) -> None:
    """Instead of a point with its interval for each; a smoothed line is enough."""
    windows = [line(at) for at in range(number)]
    assert layers_of(trend_charts.trend_chart(trend(number), windows, "UTC")) == layers
    smoothed = layers_of(trend_charts.trend_chart(trend(number, smoothed=np.full(number, 0.2)), windows, "UTC"))
    assert smoothed == [layers[0], *SMOOTHED, *([POINT] if number == 60 else [])]


def test_unlisted_values_have_a_chart() -> None:
    mass = ("line", "value", None)
    windows = [line(at) for at in range(60)]
    assert layers_of(trend_charts._unexplained(windows, "UTC")) == [ALONE, mass, POINT]
    more = [*windows, line(60, unlisted=0.1)]
    assert layers_of(trend_charts._unexplained(more, "UTC")) == [BAND, mass, ("line", "truth", None)]
    assert data_of(trend_charts._unexplained(windows, "UTC"))[0]["said"] == "day 0: 50.0 % (40.0 to 60.0 %)"


def without_versions(spec: Any) -> dict[str, Any]:
    """A specification without the address of its language, which has a version."""
    found = json.loads(spec) if isinstance(spec, (str, bytes)) else spec
    return {name: value for name, value in found.items() if name != "$schema"}


def charts_of_everything() -> dict[str, Any]:
    """Name -> specification of each kind of chart, with all that it may have."""
    windows = [line(at, unlisted=0.1) for at in range(3)]
    full = {name: np.array([0.2, 0.3, 0.4]) for name in ("smoothed", "smoothed_low", "smoothed_high", "truth")}
    of, entries = trend(**full, moved=np.array([False, True, False])), [entry(truth=0.1), entry("b")]
    figures = [figure_trend(unit="min"), figure_trend(unit="min", smoothed=np.full(3, 2.5))]
    bins = numbers(bar(1, 2, 0.2), bar(2, 30, 0.5), figures=[figure("median", value=12.0)], trends=figures)
    latest = SimpleNamespace(entries=entries, window=windows[-1])
    parts = [part(trends=[of], latest=latest), part(numbers=bins), part(drawn=0)]
    report, nothing = (
        SimpleNamespace(parts=of_page, title="T", zone="UTC", levels=USUAL, counted="answers")
        for of_page in (parts, [])
    )
    outcomes = [
        Outcome(mechanism="krr", epsilon=epsilon, estimator="raw", raw_error=0.1, error=0.2, covered=0.9)
        for epsilon in (1.0, 2.0)
    ]
    return {
        "trend": trend_charts.trend_svg(of, windows, "UTC"),
        "unexplained": trend_charts.unexplained_svg(windows, "UTC"),
        "curve": number_charts.curve_svg(bins),
        "figure": trend_charts.trend_svg(figures[0], windows, "UTC"),
        "smoothed figure": trend_charts.trend_svg(figures[1], windows, "UTC"),
        "picture": picture_of.picture(report, number_charts.panel),  # type: ignore[arg-type]  # both kinds of panels are drawn
        "empty picture": picture_of.picture(nothing, number_charts.panel),  # type: ignore[arg-type]  # both kinds of panels are drawn
        "plan": error_charts.picture_of_plan([{"name": "a", "l1": 0.1, "half_width": 0.2, "private": True}]),
        "trials": error_charts.picture_of_trials(outcomes),
    }


def test_charts_change_only_on_purpose() -> None:
    """Sizes, colours and marks: each chart as it was reviewed."""
    with mock.patch.object(charts, "_drawn", str), mock.patch.object(error_charts, "png_of", json.dumps):
        drawn = charts_of_everything()
    now = [{"chart": name, "specification": without_versions(spec)} for name, spec in drawn.items()]
    assert now == golden("charts.json", lambda: now)
    for one in now:  # each in the words of Vega-Lite, or it raises
        altair.Chart.from_dict(one["specification"])


def test_pages_are_made_without_altair() -> None:
    """Its import takes longer than drawing ten charts; pictures need it."""
    program = "import sys, uldp_transforms_report.written_report; print('altair' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert said == "False\n"


def test_pictures_are_drawn_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """And for screens with small pixels."""
    given: list[Any] = []

    def drawn(spec: Any, **options: Any) -> Any:
        given.append(options)
        return b"png" if "scale" in options else "svg"

    monkeypatch.setattr(charts.vl_convert, "svg_to_png", drawn)
    monkeypatch.setattr(charts.vl_convert, "vegalite_to_svg", drawn)
    assert (charts.png_of({}), charts.svg_of({})) == (b"png", b"svg\n")
    assert given == [{"allowed_base_urls": []}, {"scale": 1.5}, {"allowed_base_urls": []}]


# --------------------------------------------------------------------------------------------------------------- times


def axis_of(starts: list[str | None], zone: str = "UTC") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = [line(0, start=start, name="n") for start in starts]
    number = len(starts)
    columns = {name: np.linspace(0, 1, number) for name in ("share", "low", "high")} | {"more": np.full(number, NAN)}
    chart = window_chart(lines, columns, zone, NumberFormat().words, [charts.points(name) for name in columns])
    return chart["encoding"]["x"], data_of(chart)


def test_times_are_those_of_the_place_of_the_job() -> None:
    """On an axis that a browser takes for UTC; windows of everything have no time."""
    x, values = axis_of(["2000-07-01T00:00:00Z", None, "2000-12-01T00:00:00Z"], "Europe/Berlin")
    assert [row["time"] for row in values] == [moment_of("2000-07-01T02:00:00Z"), moment_of("2000-12-01T01:00:00Z")]
    assert [row["share"] for row in values] == [0.0, 1.0] and values[0]["more"] is None
    assert x["scale"]["type"] == "utc" and x["field"] == "time" and not x["axis"]["grid"]
    assert values[1]["said"] == "n: 100.0 % (100.0 to 100.0 %)"
    assert axis_of([None])[1] == []


def test_an_axis_of_time_begins_with_a_whole_date() -> None:
    starts: list[str | None] = [rows.span(at)["window_start"] for at in range(31)]
    x, values = axis_of(starts)
    times = [row["time"] for row in values]
    assert x["axis"]["values"] == [times[0], times[14], times[28]]
    labels = json.loads(x["axis"]["labelExpr"].removeprefix("(").removesuffix(")[toNumber(datum.value)]"))
    assert [*labels] == [str(at) for at in x["axis"]["values"]]
    assert [*labels.values()] == ["6 Nov 2000", "20 Nov", "4 Dec"]


def test_numbers_of_a_chart_are_short_and_unknown_ones_are_none() -> None:
    assert charts.numbers_or_none(np.array([NAN, 0.123456789, 0.0, 1])) == [None, 0.123457, 0.0, 1.0]


# ---------------------------------------------------------------------------------------------------------- sentences


def test_a_chart_has_a_sentence() -> None:
    windows = [line(at) for at in range(4)]
    of = trend(4, value=np.array([NAN, 0.2, 0.5, 0.3]))
    assert (
        trend_charts.sentence_of(of, windows)
        == "a: 20.0 % (day 1), 30.0 % (day 3), between 20.0 % and 50.0 % in 3 windows."
    )
    moved = trend(4, value=np.array([0.1, 0.2, 0.5, 0.3]), moved=np.array([False, True, False, True]))
    assert trend_charts.sentence_of(moved, windows).endswith("in 4 windows. It changed in day 1, day 3.")


def test_gaps_of_a_smoothed_line_are_told() -> None:
    windows = [line(at) for at in range(3)]
    low, smoothed = np.full(3, 0.5), np.full(3, 0.1)
    assert trend_charts.broken_of(trend(), windows) == ""
    of = trend(low=low, high=low + 0.1, smoothed_low=smoothed, smoothed_high=np.array([0.2, 0.6, 0.6]))
    assert (
        trend_charts.broken_of(of, windows)
        == "The smoothed line breaks in day 0: that window's own interval excludes it."
    )
    of = trend(low=low, high=low + 0.1, smoothed_low=smoothed, smoothed_high=np.array([0.2, 0.6, 0.2]))
    assert trend_charts.broken_of(of, windows) == (
        "The smoothed line breaks in day 0, day 2: the intervals of these windows exclude it."
    )


# ------------------------------------------------------------------------------------------------------------- picture


def part(number: int = 3, entries: int = 2, drawn: int = 1, **more: Any) -> Any:
    latest = SimpleNamespace(entries=[entry(f"v{at}") for at in range(entries)], window=line(number - 1))
    given = {
        "id": "c",
        "which": "version 1",
        "noun": Noun(),
        "numbers": None,
        "latest": latest,
        "windows": [line(at) for at in range(number)],
    }
    return SimpleNamespace(**given | {"trends": [trend(number) for _ in range(drawn)]} | more)


def picture(*parts: Any) -> dict[str, Any]:
    report: Any = SimpleNamespace(parts=parts, title="T", zone="UTC", levels=USUAL, counted="answers")
    return picture_of.picture(report, lambda of, zone: {"numbers": [of.id, zone]})


def subtitle(found: dict[str, Any]) -> list[str]:
    lines: list[str] = found["title"]["subtitle"]
    return lines


def test_the_picture_has_four_collections_and_says_what_is_missing() -> None:
    first = "Estimated shares of answers with 95 % intervals, adjusted for showing the largest values"
    found = picture(part(), part(drawn=0), part(), part(), part())
    assert subtitle(found) == [first, "2 further collection(s) have no numbers or do not fit here"]
    assert len(found["vconcat"]) == 4 and found["title"]["text"] == "T " and found["config"]["background"] == "#ffffff"
    assert len(picture(part(), part(), part(), part())["vconcat"]) == 5 and subtitle(picture(part())) == [first]
    empty = picture(part(drawn=0))
    assert empty["vconcat"][0]["mark"]["text"] == "Not enough data for numbers"
    assert subtitle(empty) == [first, "1 further collection(s) have no numbers or do not fit here"]
    bars = SimpleNamespace(bars=[1])
    assert picture(part(numbers=bars))["vconcat"][1] == {"numbers": ["c", "UTC"]}
    assert "hconcat" in picture(part(numbers=SimpleNamespace(bars=[])))["vconcat"][1]


def test_a_collection_has_twenty_values_and_six_trends_two_in_a_row() -> None:
    found = picture_of._part(part(entries=25, drawn=7), "UTC")
    latest, beside = found["hconcat"]
    assert len(data_of(latest if "data" in latest else latest["layer"][0])) == 20
    assert latest["title"]["text"] == "c, version 1: day 2"
    assert latest["title"]["subtitle"] == "1,000 answers, the largest shares first"
    assert [len(row["hconcat"]) for row in beside["vconcat"]] == [2, 2, 2]
    assert [len(row["hconcat"]) for row in picture_of._part(part(drawn=3), "UTC")["hconcat"][1]["vconcat"]] == [2, 1]
    assert len(picture_of._part(part(number=1), "UTC")["hconcat"]) == 1
    assert len(picture_of._part(part(number=2), "UTC")["hconcat"]) == 2
    timeless = [line(0), line(1, start=None)]
    assert len(picture_of._part(part(windows=timeless, drawn=2), "UTC")["hconcat"]) == 1
    hidden = part()
    hidden.latest.window = line(2, num_reports=None)
    assert picture_of._part(hidden, "UTC")["hconcat"][0]["title"]["subtitle"] == "the largest shares first"


def texts_of(legend: dict[str, Any]) -> list[str]:
    return [one["layer"][-1]["mark"]["text"] for one in legend["hconcat"]]


def test_a_legend_explains_what_is_drawn_and_no_more() -> None:
    alone, latest = "each window alone", "latest window"
    assert texts_of(picture_of._legend([part()])) == [latest, alone]
    assert texts_of(picture_of._legend([part(number=1)])) == [latest]
    assert texts_of(picture_of._legend([part(number=2)])) == [latest, alone]
    smooth = part(trends=[trend(smoothed=np.array([NAN, NAN, 0.2]), moved=np.array([False, True, False]))])
    known = part()
    known.latest.entries[1] = entry(truth=0.0)
    assert texts_of(picture_of._legend([smooth, known])) == [
        *(latest, alone, "smoothed over neighbouring windows", "truth", "the share changed")
    ]
    late = part(trends=[*[trend() for _ in range(6)], smooth.trends[0]])
    assert texts_of(picture_of._legend([late, part(latest=None)])) == [latest, alone]


def test_names_of_trends_are_cut() -> None:
    found = charts.beside(picture_of._latest([entry()]), [("x" * 40, {"mark": "point"})])
    title = found["hconcat"][1]["vconcat"][0]["hconcat"][0]["title"]
    assert title["text"] == f"{'x' * 19}\N{HORIZONTAL ELLIPSIS}{'x' * 10} "


# ------------------------------------------------------------------------------------------------------------- numbers


def figure(name: str = "mean", **more: Any) -> Figure:
    given: dict[str, Any] = {
        "value": 2.0,
        "low": 1.0,
        "high": 4.0,
        "sure_low": 0.5,
        "sure_high": 5.0,
        "is_share": False,
    }
    return Figure(name=name, **given | more)


def bar(low: float, high: float, share: float) -> Bar:
    return Bar(figure=entry(f"{low:g} to {high:g}", share), begin=low, end=high)


def numbers(*bars: Bar, figures: Any = (), unit: str = "min", trends: Any = ()) -> NumberPart:
    return NumberPart(unit=unit, is_smooth=True, figures=figures, bars=bars, trends=trends)


def test_bins_of_very_different_widths_are_on_a_logarithmic_axis() -> None:
    """If all are above 0."""
    assert not number_charts._is_logarithmic([bar(1, 2, 0), bar(2, 10, 0)])
    assert number_charts._is_logarithmic([bar(1, 2, 0), bar(2, 10.001, 0)])
    assert not number_charts._is_logarithmic([bar(0, 1, 0), bar(1, 100, 0)])
    assert number_charts._is_logarithmic([bar(0.1, 1, 0), bar(1, 100, 0)])


def figure_trend(number: int = 3, unit: str = "", **arrays: Any) -> Trend:
    value = np.linspace(2.0, 4.0, number)
    given = {"value": value, "low": value - 0.5, "high": value + 0.5, "sure_low": value - 1, "sure_high": value + 1}
    return trend_with(figure(unit=unit), number, **given | arrays)


def test_a_figure_over_windows_has_both_intervals() -> None:
    """A window with an open end has no sure band."""
    windows = [line(at) for at in range(3)]
    of = figure_trend(unit="min", sure_high=np.array([3.0, NAN, 5.0]), sure_low=np.array([1.0, 2.0, NAN]))
    chart = trend_charts.trend_chart(of, windows, "UTC")
    assert layers_of(chart) == [
        *(("rule", "sure_low", "sure_high"), ("area", "low", "high"), ("line", "value", None), ("point", "value", None))
    ]
    values = data_of(chart)
    assert [(row["sure_low"], row["sure_high"]) for row in values] == [(1.0, 3.0), (None, None), (None, None)]
    assert values[0]["said"] == "day 0: 2.0 min (1.5 to 2.5)"
    assert data_of(trend_charts.trend_chart(figure_trend(), windows, "UTC"))[0]["said"] == "day 0: 2.0 (1.5 to 2.5)"
    y = chart["layer"][0]["encoding"]["y"]
    assert y["axis"]["title"] == "min " and y["scale"] == {"domain": [1.0, 5.0], "nice": False, "zero": False}
    assert y["axis"]["values"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    for number, points in ((60, 1), (61, 0)):
        many = trend_charts.trend_chart(figure_trend(number), [line(at) for at in range(number)], "UTC")
        assert layers_of(many).count(("point", "value", None)) == points


def test_a_smoothed_figure_breaks_where_a_window_contradicts_it() -> None:
    windows = [line(at) for at in range(4)]
    smoothed = {
        "smoothed": np.full(4, 2.5),
        "smoothed_low": np.array([2.0, 2.0, NAN, 2.0]),
        "smoothed_high": np.array([3, 3, 3, NAN]),
    }
    of = figure_trend(4, **smoothed, sure_low=np.array([1.0, 3.5, 1, 1]), sure_high=np.array([3.0, 5.0, 5, 5]))
    chart = trend_charts.trend_chart(of, windows, "UTC")
    assert layers_of(chart) == [
        *(ALONE, ("area", "smoothed_low", "smoothed_high"), ("line", "smoothed", None)),
        *(("point", "value", None),),
    ]
    values = data_of(chart)
    assert [row["smoothed"] for row in values] == [2.5, None, 2.5, 2.5]
    assert [(row["smoothed_low"], row["smoothed_high"]) for row in values] == [(2.0, 3.0)] + [(None, None)] * 3
    for number, points in ((60, 1), (61, 0)):
        many = figure_trend(number, smoothed=np.full(number, 2.5))
        found = trend_charts.trend_chart(many, [line(at) for at in range(number)], "UTC")
        assert layers_of(found).count(("point", "value", None)) == points


def test_charts_of_numbers_have_sentences() -> None:
    windows = [line(at) for at in range(4)]
    of = figure_trend(4, value=np.array([NAN, 2.0, 9.0, 4.0]))
    with_unit = dataclasses.replace(of, figure=figure(unit="min"))
    assert trend_charts.sentence_of(with_unit, windows) == "mean: 2.0 min (day 1), 4.0 min (day 3)."
    assert trend_charts.sentence_of(of, windows) == "mean: 2.0 (day 1), 4.0 (day 3)."
    bars = [bar(0, 10, NAN), bar(10, 20, 0.5), bar(20, 30, 0.2)]
    assert (
        number_charts.sentence_of_curve(numbers(*bars), "answers")
        == "Share of answers in 3 bins, most in 10 to 20 min: 50.0 %"
    )
    assert number_charts.sentence_of_curve(numbers(*bars, unit=""), "answers").endswith("most in 10 to 20: 50.0 %")


@pytest.mark.parametrize("smoothed", [False, True])
def test_the_picture_of_numbers_has_its_curve_and_its_figures(smoothed: bool) -> None:
    of = figure_trend(smoothed=np.full(3, 2.5)) if smoothed else figure_trend()
    drawn = part(numbers=numbers(bar(0, 10, 0.2), bar(10, 20, 0.5), trends=[of, of]))
    found = number_charts.panel(drawn, "UTC")
    curve, beside = found["hconcat"]
    colours = (
        "Blue: smoothed over windows. Grey: each window alone"
        if smoothed
        else "Blue: smooth. Grey: intervals without smoothness"
    )
    assert curve["title"]["text"] == "c, version 1: day 2" and curve["title"]["subtitle"] == ["1,000 answers", colours]
    assert [chart["title"]["text"] for row in beside["vconcat"] for chart in row["hconcat"]] == ["mean, min "] * 2
    drawn.numbers, drawn.latest.window = numbers(bar(0, 10, 0.2), unit=""), line(2, num_reports=None)
    assert number_charts.panel(drawn, "UTC")["hconcat"][0]["title"]["subtitle"] == [
        "Blue: smooth. Grey: intervals without smoothness"
    ]


# ------------------------------------------------------------------------------------------------------------- errors


def test_pictures_of_errors_have_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_charts, "png_of", lambda spec: json.dumps(spec).encode())
    plan = json.loads(error_charts.picture_of_plan([{"name": "a", "l1": 0.1, "half_width": 0.2, "private": True}]))
    assert [panel["title"] for panel in plan["vconcat"]] == [
        *("Sum of absolute errors over all values", "Half width of a sensitive value's 95 % interval")
    ]
    assert [panel["layer"][0]["encoding"]["x"]["field"] for panel in plan["vconcat"]] == ["l1", "half_width"]

    def outcome(epsilon: float, covered: float) -> Outcome:
        return Outcome(mechanism="krr", epsilon=epsilon, estimator="raw", raw_error=0.1, error=0.2, covered=covered)

    for covered, least in ((0.9, 0.85), (0.8, 0.8)):
        whole = json.loads(error_charts.picture_of_trials([outcome(2.0, 0.95), outcome(1.0, covered)]))
        found = whole["hconcat"]
        assert [one["title"] for one in found] == [
            *("Error of raw estimates", "Error of the estimator's", "Intervals that contain the truth; nominal: 95 %")
        ]
        assert [one["encoding"]["y"]["field"] for one in found[:2]] == ["raw_error", "error"]
        rule, points = found[2]["layer"]
        assert whole["datasets"][rule["data"]["name"]] == [{"y": 0.95}] and points["encoding"]["y"]["scale"][
            "domain"
        ] == [least, 1.0]
        assert found[0]["encoding"]["x"]["axis"]["values"] == [1.0, 2.0]
