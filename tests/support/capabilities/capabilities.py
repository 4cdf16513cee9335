"""The capabilities of the table: the job that asks for one, and what its rows must show beside those of another job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.capabilities.jobs import COMPARE, EARLY, LATE, Job, job
from tests.support.capabilities.studies import FOODS, PEOPLE, TEXTS, WINDOWS, WORDS

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Check = Callable[[Rows, Rows], bool]
"""Whether rows show a capability, beside those of the job without it."""


class Capability(NamedTuple):
    """One row of the table.

    Attributes:
        title: what a user can have, in the table.
        asked: the job that asks for it.
        shows: what its rows must show.
        beside: the job without it; None: its rows are not looked at.
        instead: the job of a program that has other options for it.
    """

    title: str
    asked: Job
    shows: Check
    beside: Job | None = None
    instead: Mapping[str, Job] = {}


# ---------------------------------------------------------------------- what rows show


def estimates(rows: Rows) -> Sequence[Mapping[str, Any]]:
    """Rows of windows; none in comparisons."""
    return rows.get("estimates", [])


def comparisons(rows: Rows) -> Sequence[Mapping[str, Any]]:
    return rows.get("comparisons", [])


def entries(rows: Rows, **fields: Any) -> Iterator[Mapping[str, Any]]:
    """The values of windows whose rows have these fields."""
    for row in estimates(rows):
        if all(row[name] == value for name, value in fields.items()):
            yield from row["estimates"]


def intervals(rows: Rows) -> dict[Any, tuple[float, float]]:
    """The intervals of shares, means and differences, by what they are about."""
    found: dict[Any, tuple[float, float]] = {}
    for row in estimates(rows):
        place = row["collection_version"], row["window_start"], row["group"], row["pooled"], row["pane_index"]
        found |= {(place, one["value"]): (one["ci_low"], one["ci_high"]) for one in row["estimates"]}
    for row in comparisons(rows):
        found[row["collection_version"], row["group_a"], row["group_b"], row["value"]] = row["low"], row["high"]
    return found


def widths(rows: Rows) -> dict[Any, float]:
    return {place: high - low for place, (low, high) in intervals(rows).items()}


def wider(rows: Rows, other: Rows) -> bool:
    """Every interval is longer than in the other rows."""
    own, others = widths(rows), widths(other)
    return bool(own) and own.keys() == others.keys() and all(own[place] > others[place] for place in own)


def narrower(rows: Rows, other: Rows) -> bool:
    return wider(other, rows)


def of_levels(rows: Rows, _: Rows) -> bool:
    """Every interval of the value with the smallest epsilon is longer than those of the others beside it."""
    own = widths(rows)
    protected = {place for place in own if place[-1] == "meat"}
    others = [(place, (*place[:-1], value)) for place in protected for value in ("rice", "bread", "fish")]
    return bool(protected) and all(own[place] > 1.1 * own[other] for place, other in others)


def groups(rows: Rows) -> set[str]:
    """The groups that have rows."""
    found = {row["group"] for row in estimates(rows) if row["estimates"] and row["group"]}
    return found | {row[side] for row in comparisons(rows) for side in ("group_a", "group_b")}


def by_group(rows: Rows, _: Rows) -> bool:
    return groups(rows) >= {"arm=control", "arm=new"}


def of_questions(rows: Rows) -> Rows:
    """The rows of questions alone."""
    return {
        "estimates": [row for row in estimates(rows) if row["pooled"]],
        "comparisons": [row for row in comparisons(rows) if row["collection_version"] == 0],
    }


def of_groups(rows: Rows) -> Rows:
    """The rows of groups alone."""
    return {"estimates": [row for row in estimates(rows) if row["group"]], "comparisons": comparisons(rows)}


def candidates(rows: Rows, _: Rows) -> bool:
    named = {entry["value"] for entry in entries(rows)} | {row["value"] for row in comparisons(rows)}
    return named == set(TEXTS)


def chosen_estimator(rows: Rows, _: Rows) -> bool:
    return {row["estimator"] for row in estimates(rows)} == {"projected"}


def most_frequent(rows: Rows, _: Rows) -> bool:
    return {(len(row["estimates"]), row["num_values"]) for row in estimates(rows)} == {(2, len(FOODS))}


def withheld(rows: Rows, other: Rows) -> bool:
    statuses = {(row["status"], row["num_reports"], len(row["estimates"])) for row in estimates(rows)}
    return bool(intervals(other)) and not comparisons(rows) and statuses <= {("suppressed", None, 0)}


def within_blocks(rows: Rows, _: Rows) -> bool:
    """Shares within each block sum to 1 and lie in their intervals, also of groups."""
    ends = ("display_low", "low", "share", "high", "display_high")
    for row in estimates(rows):
        shares = {one["value"]: one["share"] for one in row["in_blocks"]}
        sums = [sum(shares[value] for value in own) for own in (FOODS[:2], FOODS[2:])]
        spans = [[one[name] for name in ends] for one in row["in_blocks"]]
        if any(abs(total - 1) > 1e-9 for total in sums) or spans != list(map(sorted, spans)):
            return False
    return groups(rows) >= {"arm=control", "arm=new"}


def figures(rows: Rows, _: Rows) -> bool:
    """The quartile and the share from 45 minutes, with intervals."""
    for row in estimates(rows):
        quartile, *more = row["numbers"]["quantiles"]
        above = [one["limit"] for one in row["numbers"]["shares_above"]]
        if more or quartile["q"] != 0.25 or not quartile["low"] < quartile["high"] or above != [45]:
            return False
    compared = {(row["figure"], row["at"]) for row in comparisons(rows)}
    return bool(estimates(rows)) or compared >= {("quantile", 0.25), ("share_above", 45.0)}


def discovered(rows: Rows, _: Rows) -> bool:
    found = {row["value"] for row in rows.get("discovered", [])}
    return bool(found) and found <= set(WORDS)


def drawn(rows: Rows, _: Rows) -> bool:
    """Shares of groups are drawn towards those of everybody."""
    own = estimates(of_groups(rows))
    return bool(own) and all(row["borrowed"] is not None for row in own) and any(row["borrowed"] > 0 for row in own)


def smoothed(rows: Rows, _: Rows) -> bool:
    own = list(entries(rows))
    return bool(own) and all(one["smoothed_frequency"] is not None for one in own)


def smooth_figures(rows: Rows, _: Rows) -> bool:
    return bool(estimates(rows)) and all(
        row["numbers"]["mean"]["smoothed_value"] is not None for row in estimates(rows)
    )


def sums(rows: Rows, _: Rows) -> bool:
    """A set, weights, and all values, of which everybody has one."""
    for row in estimates(rows):
        found = {one["name"]: one for one in row["sums"]}
        if list(found) != ["staple", "cost", "all"] or not all(
            found["all"][end] == 1 for end in ("value", "low", "high")
        ):
            return False
        if not all(found[name]["low"] < found[name]["high"] for name in ("staple", "cost")):
            return False
    compared = {(row["figure"], row["value"]) for row in comparisons(rows)}
    return bool(estimates(rows)) or compared >= {("sum", "staple"), ("weighted_sum", "cost")}


def sums_of_texts(rows: Rows, _: Rows) -> bool:
    found = {one["name"] for row in estimates(rows) for one in row["sums"] if one["standard_error"] > 0}
    return found | {row["value"] for row in comparisons(rows) if row["figure"] == "sum"} == {"with b"}


def wider_sums(rows: Rows, other: Rows) -> bool:
    """The intervals of the set and the weights are longer than in the other rows."""

    def ends(given: Rows) -> list[float]:
        compared = [row for row in comparisons(given) if row["figure"] in ("sum", "weighted_sum")]
        shown = [one for row in estimates(given) for one in row["sums"]]
        return [one["high"] - one["low"] for one in (*shown, *compared) if one.get("name", one.get("value")) != "all"]

    pairs = list(zip(ends(rows), ends(other), strict=True))
    return bool(pairs) and all(own > before for own, before in pairs)


def smooth_sums(rows: Rows, _: Rows) -> bool:
    found = [one for row in estimates(rows) for one in row["sums"] if one["name"] != "all"]
    return bool(found) and all(one["smoothed_low"] < one["smoothed_value"] < one["smoothed_high"] for one in found)


def pooled(rows: Rows, _: Rows) -> bool:
    """The versions of a question have one row, from the reports of both."""
    own = estimates(of_questions(rows))
    reports = {row["window_start"]: row["num_reports"] for row in own if not row["group"]}
    each = {row["window_start"]: row["num_reports"] for row in estimates(rows) if not (row["pooled"] or row["group"])}
    return bool(comparisons(of_questions(rows))) or (bool(own) and reports == {at: 2 * each[at] for at in each})


def of(part: Callable[[Rows], Rows], check: Check) -> Check:
    """The check of a part of the rows."""
    return lambda rows, other: check(part(rows), part(other))


def simulated(rows: Rows, _: Rows) -> bool:
    return {row["simulated"] for row in (*estimates(rows), *comparisons(rows))} == {True}


def named_runs(rows: Rows, _: Rows) -> bool:
    return bool(estimates(rows)) and all(row["run"] for row in estimates(rows))


def any_time(rows: Rows, _: Rows) -> bool:
    """Intervals that hold jointly; in streams of a window before and after late reports."""
    panes = {row["pane_index"] for row in estimates(rows)}
    return {row["interval"] for row in (*estimates(rows), *comparisons(rows))} == {"anytime"} and panes != {0}


def early(rows: Rows, _: Rows) -> bool:
    return "early" in {row["pane_timing"].lower() for row in estimates(rows)}


def once_each(rows: Rows, other: Rows) -> bool:
    """Copies leave the rows as they are without any, and the ledger names them."""
    duplicates = sum(row["duplicates"] for row in rows.get("ledger", []))
    numbers = {row["num_reports"] for row in estimates(rows)}
    return duplicates == WINDOWS * PEOPLE and numbers == {PEOPLE} and intervals(rows) == intervals(other)


def accounted(rows: Rows, _: Rows) -> bool:
    """What was received was accepted, or has a reason."""
    own = rows.get("ledger", [])
    received, accepted = (sum(row[name] for row in own) for name in ("received", "accepted"))
    rejected = sum(number for row in own for number in row["rejected"].values())
    return received == accepted + rejected and accepted == WINDOWS * PEOPLE and rejected == PEOPLE


def bits(rows: Rows, other: Rows) -> bool:
    """Sentinels look inside reports."""
    names, before = (
        {one["name"] for row in each.get("health", []) for one in row["findings"]} for each in (rows, other)
    )
    return names > before


# ---------------------------------------------------------------------- the table

ARMS = {"by": ("arm",)}
SUMS = {"sums": '{"staple": ["rice", "bread"], "cost": {"weights": {"rice": 3, "meat": 7.5}}, "all": {"match": "*"}}'}
OF_TEXTS = {"candidates": TEXTS, "sums": '{"with b": {"match": "*b*"}}'}

CAPABILITIES = (
    Capability("listed values of open alphabets (`candidates`)", job("hosts", candidates=TEXTS), candidates),
    Capability("unlisted values (`discover`)", job("words", discover=True), discovered),
    Capability(
        "quantiles and limits of numbers (`quantiles`, `limits`)",
        job("minutes", limits=(45,), quantiles=(0.25,)),
        figures,
    ),
    Capability("levels of values, each with its own epsilon", job("leveled"), of_levels),
    Capability("choice of the estimator (`estimator`)", job("foods", estimator="projected"), chosen_estimator),
    Capability("only the most frequent values (`show`)", job("foods", show=2), most_frequent),
    Capability(
        "suppression of small samples (`min_reports`)", job("foods", min_reports=10**6), withheld, beside=job("foods")
    ),
    Capability("rows by group (`by`)", job("foods", **ARMS), by_group),
    Capability("values in public blocks, by group", job("dishes", **ARMS), within_blocks),
    Capability(
        "figures of numbers by group", job("minutes", limits=(45,), quantiles=(0.25,), **ARMS), of(of_groups, figures)
    ),
    Capability("sums over chosen values (`sums`)", job("foods", **SUMS), sums),
    Capability("sums over values of open alphabets", job("hosts", **OF_TEXTS), sums_of_texts),
    Capability("sums by group", job("foods", **SUMS, **ARMS), of(of_groups, sums)),
    Capability("sums of questions by group", job("diet", **SUMS, **ARMS), of(of_questions, sums)),
    Capability(
        "sums with an allowance for false reports",
        job("diet", liars=0.02, **SUMS),
        wider_sums,
        beside=job("diet", **SUMS),
    ),
    Capability("questions with several versions", job("diet"), pooled),
    Capability("questions by group", job("diet", **ARMS), of(of_questions, by_group)),
    Capability("confidence level (`confidence`)", job("foods", confidence=0.8), narrower, beside=job("foods")),
    Capability("allowance for false reports (`liars`)", job("foods", liars=0.02), wider, beside=job("foods")),
    Capability(
        "allowance for false reports, for questions",
        job("diet", liars=0.02),
        of(of_questions, wider),
        beside=job("diet"),
    ),
    Capability("people who repeat memos (`client_window`)", job("memos"), wider, beside=job("fresh")),
    Capability("borrowing between groups (`borrow`)", job("foods", borrow=True, **ARMS), drawn),
    Capability("borrowing between groups, for questions", job("diet", borrow=True, **ARMS), of(of_questions, drawn)),
    Capability("smoothing (`smooth`)", job("foods", smooth=True), smoothed),
    Capability("smoothing of questions", job("diet", smooth=True), of(of_questions, smoothed)),
    Capability("smoothing by group", job("foods", smooth=True, **ARMS), of(of_groups, smoothed)),
    Capability("smoothing of figures of numbers", job("minutes", smooth=True), smooth_figures),
    Capability("smoothing of sums", job("foods", smooth=True, **SUMS), smooth_sums),
    Capability(
        "corrections for late reports, with joint intervals (`late_every`)",
        job("foods", way=LATE, late_every="0s"),
        any_time,
        instead={COMPARE: job("foods", anytime=True)},
    ),
    Capability("early rows of unfinished windows (`early_every`)", job("foods", way=EARLY, early_every="1s"), early),
    Capability(
        "deduplication (`deduplicate`)",
        job("foods", copies=True, deduplicate=True),
        once_each,
        beside=job("foods"),
    ),
    Capability("sentinels inside reports (`bit_patterns`)", job("bits", bit_patterns=True), bits, beside=job("bits")),
    Capability("ledger of all reports", job("foods"), accounted),
    Capability("name of the run in each row", job("foods"), named_runs),
    Capability("mark of simulated reports in each row", job("foods"), simulated),
)
