"""Estimates in notebooks: the frame, the table and the chart show the numbers of the estimate, largest first."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from tests.support.html_tree import tree_of
from tests.support.ldp.made_collections import made
from tests.support.refusals.ldp.notebooks import CLOSED, FIELDS, HASHED, KRR, VALUES, estimate_of
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, Estimate, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return estimate_of([value for at, value in enumerate(VALUES) for _ in range(20 * (at + 1))])


def test_a_frame_has_every_value_largest_first(estimate: Estimate) -> None:
    frame = estimate.to_frame()
    assert sorted(frame["value"]) == sorted(VALUES)
    assert frame["frequency"].is_monotonic_decreasing
    at = [estimate.values.index(value) for value in frame["value"]]
    for column, array in (
        ("frequency", estimate.frequencies),
        ("ci_low", estimate.ci_low),
        ("ci_high", estimate.ci_high),
        ("raw_frequency", estimate.raw_frequencies),
        ("standard_error", estimate.standard_errors),
    ):
        np.testing.assert_array_equal(frame[column], array[at])
    low, high = estimate.display_intervals(len(VALUES))  # of all values, in their own order
    np.testing.assert_array_equal(frame["display_low"], low[at])
    np.testing.assert_array_equal(frame["display_high"], high[at])
    assert frame.attrs == {"num_reports": 6500, "estimator": "eb", "interval": "fixed"}


def test_a_table_has_the_largest_and_says_of_how_many(estimate: Estimate) -> None:
    table = tree_of(estimate._repr_html_())
    frame = estimate.to_frame()
    assert [next(row.all("td")).text for row in table.all("tr") if any(row.all("td"))] == list(frame["value"][:20])
    assert "6,500 reports, estimator eb: the 20 largest of 25 values." in table.text
    assert "adjusted for the selection of the largest values and valid for one look" in table.text
    assert "all looks together" in tree_of(estimate.anytime(1000)._repr_html_()).text
    first = next(row for row in table.all("tr") if any(row.all("td")))
    low, high = frame["display_low"][0], frame["display_high"][0]
    assert first.text.endswith(f"{frame['frequency'][0]:.1%} {low:.1%} to {high:.1%}".replace("%", " %"))


def test_estimates_speak_of_what_the_collection_counts() -> None:
    """A chart, a table and a line; of groups, of reports in memory and of a question too."""
    noun = {"one": "flight", "many": "flights"}
    dimension = {"name": "arm", "values": ["new"]}
    plain = Collection.from_json(FIELDS | {"alphabet": CLOSED, "dimensions": [dimension]})
    flights = Collection.from_json(plain.to_json() | {"noun": noun, "question": "q"})
    rng = generator("what is counted")
    batch = plain.perturb([VALUES[0]] * 60, rng, [0] * 60, {"arm": ["new"] * 60})
    for of, many, title in ((plain, "reports", "people"), (flights, "flights", "flights")):
        counts = of.count(batch)
        found = [of.estimate(counts), *of.estimate_by(batch, ["arm"]).values(), of.estimate_reports(batch)]
        if of is flights:
            [question] = questions_of([of])
            found.append(question.estimate({of.fingerprint: counts}, ESTIMATORS["eb"]()).estimate)
        for one in found:
            assert f"60 {many}, estimator" in one._repr_html_()
            assert f"60 {many};" in repr(one)
            layers = one.plot().to_dict()["layer"]
            titles = [layer["encoding"]["x"].get("title") for layer in layers]
            assert f"share of {title}, with 95 % interval" in titles


def test_foreign_texts_are_escaped_and_unlisted_values_are_told() -> None:
    shown = estimate_of(["<script>"] * 300 + ["else"] * 100, HASHED, ["<script>", "other"])
    assert "<script>" not in shown._repr_html_() and "&lt;script&gt;" in shown._repr_html_()
    assert "Unlisted values: " in shown._repr_html_()
    attrs = shown.to_frame().attrs
    assert attrs["unexplained_low"] == shown.unexplained_low
    assert attrs["unexplained_mass"] == shown.unexplained_mass


def test_a_chart_draws_the_frame(estimate: Estimate) -> None:
    frame = estimate.to_frame()
    rows = estimate.plot(5).to_dict()["data"]["values"]
    assert [row["value"] for row in rows] == list(frame["value"][:5])
    for name in ("frequency", "display_low", "display_high"):
        assert [row[name] for row in rows] == pytest.approx(list(frame[name][:5]))  # ends are found by iteration


def test_a_repr_fits_a_line(estimate: Estimate) -> None:
    assert repr(estimate).startswith("<Estimate by 'eb': 25 values, 6,500 reports;") and len(repr(estimate)) < 120


# ---------------------------------------------------------------------- numbers and groups

MINUTES = {"id": "ordered", "low": 0, "high": 60, "num_bins": 12, "others": ["cancelled"], "unit": "min"}
ARMS = [{"name": "arm", "values": ["new", "<b>"]}]


@pytest.fixture(scope="module")
def delays() -> dict[tuple[str, ...], Estimate]:
    collection = Collection.from_json(FIELDS | {"alphabet": MINUTES, "dimensions": ARMS})
    held = [3.0, 14.0, 14.0, 44.0] * 500
    batch = collection.perturb(held, np.random.default_rng(2), dimensions={"arm": ["new", "new", "<b>", "<b>"] * 500})
    return collection.estimate_by(batch, ["arm"], "eb")


def test_figures_of_numbers_precede_the_bins(delays: dict[tuple[str, ...], Estimate]) -> None:
    shown = delays["new",]
    figures = shown.figures([15], [0.5])
    assert figures.mean is not None and figures.mean.value is not None
    first, second = tree_of(shown._repr_html_()).all("table")
    cells = [[cell.text for cell in row.all("td")] for row in first.all("tr")][1:]
    edges = ["15", "30", "45"]  # of the inner edges 5, 10, ..., 55
    names = ["mean", "quantile 0.1", "median", "quantile 0.9", *(f"share from {edge} min on" for edge in edges)]
    assert [row[0] for row in cells] == names
    mean, low, high = (f"{one:.1f}" for one in (figures.mean.value, figures.mean.low, figures.mean.high))
    assert cells[0][1:3] == [mean, f"({low} to {high})"]
    assert cells[0][3] == f"{figures.mean.display_value:.1f}"
    assert "Figures" not in second.text and "1,000 reports, estimator eb: 13 values" in second.text
    assert repr(shown).startswith(f"<Estimate by 'eb' of arm new: mean {mean} ({low} to {high}), median ")
    assert repr(shown).endswith(", 13 values, 1,000 reports; figures() has more>")


def test_a_group_is_named(delays: dict[tuple[str, ...], Estimate]) -> None:
    assert set(delays) == {("new",), ("<b>",)}
    shown = delays["<b>",]
    assert shown.group == {"arm": "<b>"} and shown.to_frame().attrs["group"] == {"arm": "<b>"}
    html = shown._repr_html_()
    assert "arm &lt;b&gt;: figures of numbers (in min)" in html and "arm &lt;b&gt;: 1,000 reports" in html
    assert "<b>" not in html


def test_bins_are_drawn_in_their_order_with_the_median(delays: dict[tuple[str, ...], Estimate]) -> None:
    shown = delays["new",]
    drawn = shown.plot().to_dict()
    sets = list(drawn["datasets"].values())
    bars = next(rows for rows in sets if "begin" in rows[0])
    [line] = next(rows for rows in sets if "median" in rows[0])
    assert sorted(row["begin"] for row in bars) == list(range(0, 60, 5))  # without the text
    frame = shown.to_frame().set_index("value")
    for row in bars:
        assert row["frequency"] == pytest.approx(frame.loc[row["value"], "frequency"])
    assert line["median"] == shown.figures().quantiles[1].value
    assert any("Dashed: median" in text for text in drawn["title"]["subtitle"])


@pytest.mark.parametrize("other", ["texts", "anytime"])
def test_figures_are_refused(other: str, estimate: Estimate, delays: dict[tuple[str, ...], Estimate]) -> None:
    changed = {"texts": estimate, "anytime": delays["new",].anytime(1000)}[other]
    with pytest.raises(SpecError) as refused:
        changed.figures()
    assert str(refused.value) == (
        "Estimate.figures needs an estimate of the alphabet ordered, with intervals for one look, got intervals of the "
        f"kind {changed.interval!r} for {len(changed.values)} values"
    )
    assert changed._repr_html_().count("<table>") == 1  # bins alone


COLUMNS = {"pandas": pandas.Series, "polars": polars.Series, "arrow": pyarrow.array, "list": list}


@pytest.mark.parametrize("library", COLUMNS)
def test_columns_of_each_library_are_perturbed_alike(library: str) -> None:
    """Texts and numbers; what is missing is named by its row."""
    column = COLUMNS[library]
    texts, numbers = ["flu", "cold"] * 5, [1.5, 40.0, 3.0]
    of_texts = made({"id": "closed", "values": ["flu", "cold"]}, KRR)
    of_numbers = made({"id": "ordered", "low": 0, "high": 50, "num_bins": 5}, KRR)
    for collection, values in ((of_texts, texts), (of_numbers, numbers)):
        expected, found = (collection.perturb(held, generator(library)) for held in (values, column(values)))
        assert found.payloads.tolist() == expected.payloads.tolist()
    with pytest.raises(TypeError, match=r"got NoneType in row 1$"):
        of_texts.perturb(column(["flu", None, "cold"]))
    with pytest.raises(SpecError, match=r"a value must be a number such as 12\.5, got .*not finite.* in row 1$"):
        of_numbers.perturb(column([1.5, None, 3.0]))
