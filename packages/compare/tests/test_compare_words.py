"""The words, pairs and limits of ``uldp compare``, on rows and sides that are made by hand."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from uldp_transforms import JobSpec
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate.added_windows import check_apart
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.ldp.alphabets.noun import Noun
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.figures.compared_figures import clearest_rows, p_text
from uldp_transforms.rows.figures.window_names import WindowNames, clock
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.windows import rfc3339
from uldp_transforms_compare.compare import (
    findings,
    found_in_words,
    pair_rows,
    row_texts,
    two_directories,
)
from uldp_transforms_compare.compare.compare_command import Comparing, _declared, _pairs
from uldp_transforms_compare.compare.findings import Findings
from uldp_transforms_compare.compare.sides import Family, Side
from uldp_transforms_compare.comparisons import homogeneity
from uldp_transforms_compare.comparisons.homogeneity import noticeable_shift

COLLECTION = Collection.from_json(
    {"id": "pets", "version": 3, "alphabet": {"id": "closed", "values": ["cat", "dog", "eel"]}}
    | {"mechanism": {"id": "krr", "epsilon": 1.0}}
)


def row(value: str = "cat", p: float = 0.5, **fields: Any) -> ComparedValue:
    numbers = {"difference": 0.1, "low": -0.125, "high": 0.25, "p_value": p, "q_value": p}
    lifts = dict.fromkeys(("lift", "lift_low", "lift_high"))
    shared: dict[str, Any] = {"collection_id": "pets", "window_start": None, "window_end": None, "value": value}
    return ComparedValue(**shared | numbers | lifts | {"group_a": "a", "group_b": "b"} | fields)


def side(name: str, cells: list[int], start: int | None = 0, end: int | None = 60_000) -> Side:
    counts = CohortCounts(np.array([sum(cells)]), np.array([cells]))
    times = {"window_start": start, "window_end": end}
    sample = Sample(
        owner=Owner(named=COLLECTION),
        place={key: None if time is None else rfc3339(time) for key, time in times.items()},
        counts={COLLECTION.fingerprint: counts},
    )
    return Side(name=name, sample=sample, asked=Asked(estimator=ESTIMATORS["empirical"]()))


SIDES = [side("g=x", [500, 300, 200]), side("g=y", [480, 310, 220], start=60_000, end=120_000)]


def family(*sides: Side, **fields: Any) -> Family:
    return Family(owner=Owner(named=COLLECTION), sides=list(sides), **fields)


def with_sample(of: Side, **fields: Any) -> Side:
    return dataclasses.replace(of, sample=dataclasses.replace(of.sample, **fields))


# ---------------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, None, "any"),
        (None, 0.25, "below +0.2500"),
        (-0.125, None, "from -0.1250"),
        (0.0, 0.25, "+0.0000 to +0.2500"),
    ],
)
def test_intervals_with_open_ends(low: float | None, high: float | None, text: str) -> None:
    of = row(low=low, high=high, difference=-0.5)
    assert row_texts.difference_texts(of) == ("-0.5000", text)
    smooth = row(display_difference=0.0, display_low=low, display_high=high)
    assert row_texts.smooth_text(smooth) == text
    assert row_texts.smooth_text(of) == ""


def test_numbers_are_as_precise_as_their_shortest_interval() -> None:
    """Half of the shortest one has two digits, and so has the distance of an end if the other one is open; shares have
    four decimals, or more if they are as precise."""
    ends = {"difference": 12.345, "low": 4.0, "high": 44.0}
    for figure in ("mean", "quantile"):
        assert row_texts.difference_texts(row(figure=figure, **ends)) == ("+12", "+4 to +44")
        smooth = row(figure=figure, **ends, display_difference=1, display_low=9.5, display_high=14.5)
        assert row_texts.difference_texts(smooth) == ("+12.3", "+4.0 to +44.0")
        assert row_texts.smooth_text(smooth) == "+9.5 to +14.5"
        opened = row(figure=figure, difference=1, low=None, high=5, display_low=1, display_high=None)
        assert row_texts.difference_texts(opened) == ("+1.0", "below +5.0")
        opened = row(figure=figure, difference=-8.007, low=-23.414, high=None)
        assert row_texts.difference_texts(opened) == ("-8", "from -23")
    shares = row(difference=0.00012, low=0.00002, high=0.00022)
    assert row_texts.difference_texts(shares) == ("+0.00012", "+0.00002 to +0.00022")
    assert row_texts.difference_texts(row(figure="share_above", **ends))[0] == "+12.3450"


@pytest.mark.parametrize(
    ("q", "low", "high", "shows"),
    [
        (0.0501, 0.1, 0.2, True),
        (0.05, 0.1, 0.2, False),
        (0.5, -0.2, -0.1, True),
        (0.5, 0.0, 0.2, False),
        (0.5, -0.2, 0.0, False),
        (0.5, None, None, False),
        (0.5, 0.1, None, True),
        (0.5, None, -0.1, True),
        (0.5, None, 0.1, False),
    ],
)
def test_what_only_the_smooth_interval_shows(q: float, low: float | None, high: float | None, shows: bool) -> None:
    assert row_texts.shows_only_smooth(row(q_value=q, display_low=low, display_high=high)) is shows
    for ends in ({"low": 0.05, "high": 0.2}, {"low": -8.4, "high": -0.2}, {"low": None, "high": -0.2}):
        without_zero = row(q_value=q, display_low=low, display_high=high, **ends)
        assert not row_texts.shows_only_smooth(without_zero)


def test_windows_are_named_in_a_time_zone_which_is_said_once() -> None:
    """On the day on which clocks are put forward, and the one before."""
    names = ["window=2001-03-23T23:00:00Z", "window=2001-03-24T23:00:00Z"]
    sides = [dataclasses.replace(of, name=name) for of, name in zip(SIDES, names)]
    rows = [row(group_a=names[1], group_b=names[0])]
    lines = found_in_words.lines_of_family(family(*sides), [], rows, WindowNames(clock("Europe/Berlin"), None))
    assert lines[0].endswith(" reports; times are in Europe/Berlin")
    assert "Europe/Berlin" not in "".join(lines[1:])
    assert any("Sun 25 Mar 2001  Sat 24 Mar 2001" in line for line in lines)
    groups = found_in_words.lines_of_family(family(*SIDES), [], [row()])
    assert "times are" not in groups[0]


def test_a_comparison_says_what_was_counted() -> None:
    called = dataclasses.replace(COLLECTION, noun=Noun(one="pet", many="pets"))
    pets = dataclasses.replace(family(*SIDES), owner=Owner(named=called))
    lines = [found_in_words.lines_of_family(of, [], [row()])[0] for of in (pets, family(*SIDES))]
    assert [line.rpartition(", ")[2] for line in lines] == ["2,010 pets", "2,010 reports"]


def test_the_test_of_all_values_does_not_deny_what_is_found() -> None:
    lines, found = (found_in_words.lines_of_family(family(*SIDES), [], [row(q_value=q)]) for q in (0.06, 0.05))
    assert lines[1].startswith("Do they differ at all? No difference was found (chi-square")
    assert found[1].startswith(
        "Do they differ at all? Single differences say so; the test of all values together does not ("
    )
    assert found[2].startswith("1 of 1 differences are found")


def test_an_interval_without_0_that_is_no_finding_is_explained() -> None:
    """Its own 95 % interval is without 0 and so is the smooth one, but q is that of all differences."""
    ends = {"difference": -4.3, "low": -8.4, "high": -0.2, "display_low": -7.9, "display_high": -0.4}
    single = row("mean", 0.042, q_value=0.42, figure="mean", display_difference=-4.1, **ends)
    lines = found_in_words.lines_of_family(family(*SIDES), [], [single])
    assert lines[-2].split()[:2] == ["mean", "a"] and lines[-1] == found_in_words.SINGLE
    assert "only the smooth interval" not in "\n".join(lines)
    found = found_in_words.lines_of_family(family(*SIDES), [], [single._replace(q_value=0.04)])
    assert lines[2].startswith("0 of 1") and found[2].startswith("1 of 1") and found_in_words.SINGLE not in found


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (0.04, "0.04"),
        (0.05, "0.05"),
        (0.0501, "0.0501"),
        (0.050000001, "0.05"),
        (0.0499, "0.05"),
        (1.04e-15, "1e-15"),
        (9.9e-16, "< 1e-15"),
        (2.4e-16, "< 1e-15"),
        (0.0, "< 1e-15"),
    ],
)
def test_p_values_as_text(number: float, text: str) -> None:
    """On the right side of 5 %, never 0, and never more exact than tests are."""
    assert p_text(number) == text


def test_the_clearest_of_tiny_p_values_is_the_largest_in_units_of_its_error() -> None:
    """Rows of earlier versions, whose p-values end at 2.4e-16, in the order of a list; the clearest are the last."""
    tied = {"p_value": 2.4e-16, "q_value": 1e-15 / 4}
    rows = [
        row(f"v{at}", difference=0.1 * at, low=0.1 * at - 0.01, high=0.1 * at + 0.01, **tied) for at in range(1, 31)
    ]
    lines = found_in_words.lines_of_family(family(*SIDES), [], rows)
    names = [line.split()[1] for line in lines if line.startswith("*")]
    assert names == [f"v{at}" for at in range(30, 10, -1)]
    assert all(line.endswith("< 1e-15") for line in lines if line.startswith("*"))


# ---------------------------------------------------------------------- sentences


POWER = (
    "A difference {} would have a p-value below .05 in at least about 80 of 100 such cases; smaller ones are often "
    "missed."
)
MISSED = "Even a difference of 1 in {} may be missed: there are too few reports, or too many liars."


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([row(noticeable=0.123), row(noticeable=0.0456), row()], POWER.format("of 0.12 in any one value")),
        ([row(noticeable=1.0)], POWER.format("of 1 in any one value")),
        ([row(noticeable=1.01), row(noticeable=0.5)], MISSED.format("any one value")),
        ([row(figure="share_above", noticeable=1.01)], MISSED.format("any one share")),
        (
            [row(figure="mean", noticeable=12.3), row(figure="share_above", noticeable=1.5), row(noticeable=0.5)],
            [POWER.format("of 12 in the mean"), MISSED.format("any one share")],
        ),
        (
            [row(figure="mean", noticeable=12.3), row(figure="quantile", noticeable=99)],
            POWER.format("of 12 in the mean"),
        ),
        ([row(figure="mean"), row(figure="quantile", noticeable=99)], None),
        ([], None),
    ],
)
def test_the_power_is_that_of_the_longest_intervals(rows: list[ComparedValue], line: str | list[str] | None) -> None:
    """No difference of shares above 1 is spoken of."""
    lines = line if isinstance(line, list) else [] if line is None else [line]
    assert found_in_words.power_in_words(Findings.of(rows)) == lines


def said_of(of: Family, liars: float | None = None) -> str:
    return found_in_words.lines_of_family(of, [], [row(liars=liars)])[1]


def test_sides_that_do_not_differ() -> None:
    """With the test's power; of several pairs, statistics and degrees are added up, and nothing is said of power."""
    counts = [each.sample.counts[COLLECTION.fingerprint] for each in SIDES]
    test = homogeneity(COLLECTION, counts)
    assert test is not None
    said = f"No difference was found (chi-square {test.statistic:.1f}, 2 degrees of freedom, p {test.p_value:.2g})"
    shift = noticeable_shift(COLLECTION, counts)
    nothing = f"Do they differ at all? {said}; that does not show that they are equal."
    noticed = f"A shift of {shift:.2g} in any one value of one group is noticed (p below .05) in about 80 of 100 cases."
    assert said_of(family(*SIDES)) == f"{nothing} {noticed}"
    both = family(*SIDES, pairs=[(SIDES[0], SIDES[1])] * 2)
    p_value = stats.chi2.sf(2 * test.statistic, 4)
    assert said_of(both) == (
        f"Do they differ at all? No difference was found (chi-square {2 * test.statistic:.1f}, 4 degrees of freedom, p "
        f"{p_value:.2g}); that does not show that they are equal."
    )
    assert found_in_words._noticed(1.0, 0.05).startswith("A shift of 1 in any one value")
    assert found_in_words._noticed(1.01, 0.05) == "The test usually misses a shift of one value in one group."


def test_why_nothing_is_tested() -> None:
    because = "Whether they differ at all is not tested, because {}."
    assert said_of(family(*SIDES), 0.0) == because.format("that test takes all reports as honest")
    by_minute = Owner(named=Collection.from_json(COLLECTION.to_json() | {"client_window": "1m"}))
    place, counts = {"window_start": rfc3339(0), "window_end": rfc3339(120_000)}, [*SIDES[0].sample.counts.values()]
    often = with_sample(
        SIDES[1], owner=by_minute, place=place, counts=dict.fromkeys([by_minute.named.fingerprint], counts[0])
    )
    assert said_of(family(SIDES[0], often)) == because.format("people report several times")
    nobody = {COLLECTION.fingerprint: CohortCounts(np.array([0]), np.array([[0, 0, 0]]))}
    assert said_of(family(SIDES[0], with_sample(SIDES[1], counts=nobody))) == because.format("too few have reports")


def test_lines_about_a_family() -> None:
    """The clearest first, at most 20; found are those up to 5 %; names cannot command the terminal."""
    rows = [row(f"v{at}\x1b", 0.04 + at / 1000) for at in range(25)]
    rows[3] = rows[3]._replace(p_value=0.001, group_a="a\n")
    lines = found_in_words.lines_of_family(family(*SIDES), [(SIDES[1], SIDES[0])], rows)
    assert lines[0] == "pets: 2 compared, 1 pair, 2,010 reports"
    assert lines[2] == "11 of 25 differences are found (q at most 0.05)."
    assert lines[3].split() == ["value", "a", "b", "difference", "95", "%", "interval", "q"]
    assert lines[4].split() == ["*", "v3�", "a�", "b", "+0.1000", "-0.1250", "to", "+0.2500", "0.043"]
    names = [line.split("\ufffd")[0].split()[-1] for line in lines[4:-1]]
    assert names == ["v3", *(f"v{at}" for at in range(20) if at != 3)]
    assert [line.startswith("*") for line in lines[4:-1]] == [True] * 11 + [False] * 9
    assert lines[-1] == "and 5 more"
    twenty = found_in_words.lines_of_family(family(*SIDES), [(SIDES[1], SIDES[0])] * 1200, rows[:20])
    assert twenty[0] == "pets: 2 compared, 1,200 pairs, 2,010 reports"
    assert len(twenty) == 4 + 20
    assert found_in_words.lines_of_family(family(SIDES[0]), [], []) == ["pets: fewer than two can be compared"]


def test_lines_about_liars_looks_and_smooth_intervals() -> None:
    honest = (
        "Intervals, p and q are of the shares among honest people, whatever liars send, who are at most 1.25 % of each "
        "side."
    )
    looks = "Intervals, p and q hold at all looks while reports arrive; the chi-square test is for one look."
    marked = "~ only the smooth interval is without 0; it takes neighbouring bins to be alike."
    plain = found_in_words.lines_of_family(family(*SIDES), [], [row(interval="fixed")])
    assert not {honest, looks, marked} & set(plain)
    lied = found_in_words.lines_of_family(family(*SIDES), [], [row(), row(liars=0.0125, interval="anytime")])
    assert lied[3:5] == [honest, looks]
    numbers = {"figure": "mean", "display_difference": 1.0, "display_low": 0.5, "display_high": 1.5}
    smooth = found_in_words.lines_of_family(family(*SIDES), [], [row("mean", low=0.0, high=2.0, **numbers), row("x")])
    table = smooth[3:]
    assert table[0].split() == ["value", "a", "b", "difference", "95", "%", "interval", "smooth", "interval", "q"]
    assert table[1].split() == ["~", "mean", "a", "b", "+0.10", "+0.00", "to", "+2.00", "+0.50", "to", "+1.50", "0.5"]
    assert table[2].split() == ["x", "a", "b", "+0.1000", "-0.1250", "to", "+0.2500", "0.5"]
    assert table[3:] == [marked]


# ---------------------------------------------------------------------- pairs


def comparing(**fields: Any) -> Comparing:
    shared: dict[str, Any] = {"spec": JobSpec.of(collections=[COLLECTION]), "jobs": [], "names": None, "output": ""}
    return Comparing(**shared | {"by": ("g",), "against": None, "anytime": False} | fields)


def test_which_sides_are_compared() -> None:
    """The baseline, or what comes first, is b; a given list of pairs is kept."""
    x, y, z = (dataclasses.replace(SIDES[0], name=name) for name in "xyz")
    of = family(x, y, z)
    assert _pairs(comparing(), of) == [(y, x), (z, x), (z, y)]
    assert _pairs(comparing(by=None), of) == [(y, x), (z, y)]
    assert _pairs(comparing(against="y"), of) == [(x, y), (z, y)]
    assert _pairs(comparing(), family(x, y, z, pairs=[(x, z)])) == [(x, z)]
    with pytest.raises(SpecError) as caught:
        _pairs(comparing(against="w"), family(*(dataclasses.replace(x, name=f"n{at:02}") for at in range(21))))
    shown = ", ".join(f"n{at:02}" for at in range(20))
    assert str(caught.value) == f"--against must be a group of 'pets' ({shown}), got 'w'"


def test_at_most_1000_pairs() -> None:
    sides = [dataclasses.replace(SIDES[0], name=str(at)) for at in range(46)]
    assert len(_pairs(comparing(), family(*sides[:45]))) == 990
    with pytest.raises(SpecError, match="at most 1,000 pairs of groups, got 1,035; use --against or fewer dimensions"):
        _pairs(comparing(), family(*sides))
    assert len(_pairs(comparing(by=None), family(*sides))) == 45
    assert len(_pairs(comparing(against="0"), family(*sides))) == 45


def test_the_period_of_a_pair_is_that_of_both() -> None:
    first, second = SIDES
    shared = pair_rows._shared(family(*SIDES), second, first)
    assert shared == {
        "collection_id": "pets",
        "collection_version": 3,
        "window_start": "1970-01-01T00:00:00Z",
        "window_end": "1970-01-01T00:02:00Z",
        "group_a": "g=y",
        "group_b": "g=x",
        "simulated": None,
        "liars": None,
    }
    always = with_sample(first, place={"window_start": None, "window_end": None})
    assert pair_rows._shared(family(), always, second)["window_start"] is None
    partly = pair_rows._shared(family(), second, always)
    assert (partly["window_start"], partly["window_end"]) == ("1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z")


def test_q_values_and_selected_intervals_are_over_all_collections() -> None:
    """Not of each one: what is found is chosen among all rows, of which a third is found here."""
    clear = family(side("x", [900, 500, 500]), side("y", [500, 900, 500]))
    alike = family(*SIDES)
    spec = JobSpec.of(collections=[COLLECTION])
    families = [(each, [(each.sides[1], each.sides[0])]) for each in (clear, alike)]
    together = [list(itertools.chain(*pairs)) for pairs in pair_rows.rows_of_pairs(spec, families, None)]
    p_values = np.array([row.p_value for rows in together for row in rows])
    order = np.argsort(p_values)
    ranked = np.minimum.accumulate((p_values[order] * 6 / np.arange(1, 7))[::-1])[::-1]
    expected = np.empty(6)
    expected[order] = np.minimum(ranked, 1)
    assert [row.q_value for rows in together for row in rows] == pytest.approx(expected.tolist())
    found = [row for rows in together for row in rows if row.q_value <= 0.05]
    assert len(found) == 2
    alone = list(itertools.chain(*pair_rows.rows_of_pairs(spec, families[:1], None)[0]))
    for of in found:
        assert of.selected_low is not None and of.selected_high is not None
        [other] = [each for each in alone if each.value == of.value]
        assert other.selected_low is not None
        level = 1 - 0.05 * 2 / 6
        unit = stats.norm.isf((1 - level) / 2) / stats.norm.isf(0.025)
        assert (of.selected_high - of.selected_low) / (of.high - of.low) == pytest.approx(unit, rel=0.02)
        assert of.selected_low < other.selected_low < of.low
    assert all(row.selected_low is None for rows in together for row in rows if row.q_value > 0.05)


def test_rows_are_made_pair_by_pair() -> None:
    """After all p-values, and no earlier than they are read."""
    spec, done = JobSpec.of(collections=[COLLECTION]), []
    sides = [side(f"x{at}", [900 + at, 500, 500]) for at in range(5)]
    pairs = [(sides[at + 1], sides[at]) for at in range(4)]
    [rows] = pair_rows.rows_of_pairs(spec, [(family(*sides), pairs)], None, lambda: done.append(1))
    assert len(done) == 4
    seen = [(row.group_a, len(done)) for row in itertools.chain.from_iterable(rows)]
    assert seen == [(f"x{at + 1}", 4 + at) for at in range(4) for _ in range(3)]
    assert len(done) == 8


def test_the_clearest_of_many_rows_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of candidates is, with ties among them."""
    rng = np.random.default_rng(1)
    rows = [
        row(f"v{at}", float(p), difference=float(difference), low=float(difference) - 1, high=float(difference) + 1)
        for at, (p, difference) in enumerate(
            zip(rng.choice([1e-40, 1e-20, 1e-15, 0.001, 0.5], 1_000), rng.choice([-1.5, -1.2, 1.2, 1.5], 1_000))
        )
    ]
    expected = [rows[at] for at in clearest_rows([each._asdict() for each in rows])[:20]]
    for number in (21, 50, 2_000):
        monkeypatch.setattr(findings, "_CANDIDATES", number)
        assert Findings.of(iter(rows)).clearest() == expected


# ---------------------------------------------------------------------- directories


def test_the_largest_declared_share_of_liars_counts() -> None:
    def records(*shares: float | None) -> list[Any]:
        return [_Record({} if share is None else {"liars": share}) for share in shares]

    assert _declared(records()) is None
    assert _declared(records(None, None)) is None
    assert _declared(records(0.01, None, 0.03, 0.02)) == 0.03
    assert _declared(records(None, 0.0)) == 0.0
    assert "specification" in {field.name for field in dataclasses.fields(RunRecord)}


@dataclasses.dataclass
class _Record:
    """What is asked of a record here."""

    specification: dict[str, Any]


def test_names_of_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones, unless they are the same; links are what they lead to."""
    monkeypatch.chdir(tmp_path)
    for name in ("a/out", "b/out", "c"):
        Path(name).mkdir(parents=True)
    Path("link").symlink_to("c")
    assert two_directories.names_of("a/out/", "c") == ("out", "c")
    assert two_directories.names_of("a/out", "b/out/") == ("a/out", "b/out")
    assert two_directories.names_of("gs://b/x/", "gs://b/y") == ("x", "y")
    for one, other in (("c", "link"), ("c", "c/"), ("a/../c", "c"), ("gs://b/x", "gs://b/x/")):
        with pytest.raises(SpecError) as caught:
            two_directories.names_of(one, other)
        assert str(caught.value) == (
            f"--with must be another directory, because reports do not differ from themselves, got {other}"
        )


def test_windows_may_touch_but_not_overlap() -> None:
    check_apart([(0, 60), (60, 120)], "pets")
    with pytest.raises(SpecError, match="DIR must have windows that do not overlap"):
        check_apart([(0, 61), (60, 120)], "pets")
