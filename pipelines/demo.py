"""The demo: clients simulated on real flights, the main job, and what the collector learns, beside the truth.

Every departure from a US airport from 14 February to 16 March 2001 stands for one person, who is asked once in each of
two collections:

- ``us-flights``: an open alphabet (hashed, k-RR). All values are protected; the collector has candidates only.
- ``us-flights-sensitive``: a closed alphabet (uRR). The airports with the fewest departures are sensitive; the others
  are reported in clear part of the time, and become much more precise.

Reports, estimates, ledger, rejected reports, a picture and a page are written into the output directory. Only this
program knows the truth; the job sees nothing but reports.
"""

from __future__ import annotations

import base64
import collections
import csv
import dataclasses
import datetime
import json
import math
import shlex
import string
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import rfc3339

from . import cli, estimate, simulate
from .values import ValuesFile

DATA = Path(__file__).with_name("data")
VALUES, CANDIDATES = "flights_2001_03.csv.gz", "airports.txt"
OPEN, SENSITIVE = "flights_open.json", "flights_sensitive.json"
REPORTS_PER_MESSAGE = 1000
DAY = 86_400_000

Truth = dict[str, collections.Counter[Any]]
"""Start of a window -> departures by airport."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Demo:
    """What to do and where to."""

    output: str
    days: int | None
    seed: int | None

    @property
    def command(self) -> str:
        options = {"--output": self.output, "--days": self.days, "--seed": self.seed}
        given = [part for name, value in options.items() if value is not None for part in (name, str(value))]
        return shlex.join(["python", "-m", "pipelines.demo", *given])

    @property
    def randomness(self) -> str:
        return "the operating system's" if self.seed is None else f"seeded ({self.seed}), for simulation only"


def configure(argv: Sequence[str]) -> Demo:
    """The command line of ``pipelines.demo``; raises SpecError or OSError."""
    parser = cli.Parser("demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", default="demo-output", help="directory for all files")
    parser.add_argument("--days", type=cli.positive(), help="number of days, from the first (default: all)")
    parser.add_argument("--seed", type=int, help="makes reports reproducible; default: secure random numbers")
    demo = Demo(**vars(parser.parse_args(argv)))
    if demo.seed is not None and not 0 <= demo.seed < 1 << 63:
        raise SpecError(f"--seed must be a whole number from 0 to 2**63 - 1, got {demo.seed}")
    try:
        import matplotlib  # noqa: F401, PLC0415  # an optional extra, slow to import
    except ImportError:
        raise SpecError("the picture needs matplotlib, the extra 'plot': pip install '.[plot]'") from None
    Path(demo.output, "reports").mkdir(parents=True, exist_ok=True)
    return demo


def job(demo: Demo) -> int:
    """The demo on one screen."""
    output, began = Path(demo.output), time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:3.0f} s] {text}", flush=True)

    say(f"reading {VALUES}")
    specs = {name: Collection.from_json(DATA / name) for name in (OPEN, SENSITIVE)}
    with tempfile.TemporaryDirectory() as scratch:
        values, truth = read_truth(demo.days, Path(scratch))
        people = sum(day.total() for day in truth.values())
        for number, (name, spec) in enumerate(specs.items()):
            say(f"simulating {people:,} clients of {spec.id}")
            seed = None if demo.seed is None else 2 * demo.seed + number
            if code := simulate.main(simulate_arguments(name, values, output / "reports" / f"{spec.id}.avro", seed)):
                return code
    say(f"estimating from {len(specs) * people:,} reports (the main job)")
    if code := estimate.main(estimate_arguments(DATA, output)):
        return code
    say("comparing with the truth")
    outcomes = [
        compare(spec, read_estimates(output, spec.id), truth, read_changes(output, spec.id)) for spec in specs.values()
    ]
    ledger = read_ledger(output, {spec.id: people for spec in specs.values()})
    busiest = int(outcomes[0].num_reports.argmax())
    say("drawing estimates.png, writing index.html")
    draw(demo, outcomes, busiest, output / "estimates.png")
    (output / "index.html").write_text(page(demo, outcomes, ledger, busiest, output), encoding="utf-8")
    print("", *day_table(outcomes, busiest), "", *summary(demo, outcomes, ledger), "", sep="\n")
    say(f"done: open {output / 'index.html'}")
    return cli.DONE


def simulate_arguments(collection: str, values: Path, output: Path, seed: int | None) -> list[str]:
    """The command line of the clients."""
    arguments = ["--collection", str(DATA / collection), "--values", str(values), "--output", str(output)]
    arguments += ["--form", "packed", "--pack", str(REPORTS_PER_MESSAGE)]
    return arguments if seed is None else [*arguments, "--seed", str(seed)]


def estimate_arguments(data: Path, output: Path) -> list[str]:
    """The command line of the main job: both collections at once, one window a day."""
    arguments = ["--collection", str(data / OPEN), "--collection", str(data / SENSITIVE)]
    arguments += ["--candidates", str(data / CANDIDATES), "--window", "1d", "--smooth"]
    return [*arguments, "--input", str(output / "reports" / "*.avro"), "--output", str(output)]


# --------------------------------------------------------------------------------------- what went in and came out


def read_truth(days: int | None, scratch: Path) -> tuple[Path, Truth]:
    """The file of values to report and the truth about them; of the first ``days`` only, in ``scratch``, if given."""
    values, times = map(np.concatenate, zip(*ValuesFile(str(DATA / VALUES)).read(1 << 20)))
    starts = times // DAY * DAY
    used = starts < starts[0] + (days or len(starts)) * DAY
    truth: Truth = collections.defaultdict(collections.Counter)
    for start in np.unique(starts[used]):
        truth[rfc3339(int(start))].update(values[starts == start].tolist())
    if used.all():
        return DATA / VALUES, truth
    path = scratch / "values.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("value", "event_time"), *zip(values[used], times[used] / 1000)])
    return path, truth


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def read_estimates(output: Path, collection_id: str) -> list[dict[str, Any]]:
    """One row per window, in order of time: the one with the highest pane index, as for every consumer."""
    rows = sorted(read_rows(output / "estimates.jsonl"), key=lambda row: (row["window_start"], row["pane_index"]))
    return list({row["window_start"]: row for row in rows if row["collection_id"] == collection_id}.values())


def read_ledger(output: Path, sent: dict[str, int]) -> dict[str, collections.Counter[Any]]:
    """Sent, received, accepted and rejected reports of each collection, all windows together."""
    ledger = {collection_id: collections.Counter(sent=number) for collection_id, number in sent.items()}
    for row in read_rows(output / "ledger.jsonl"):
        account = ledger.setdefault(row["collection_id"] or "unknown", collections.Counter())
        rejected = row["duplicates"] + sum(row["rejected"].values())
        account.update(received=row["received"], accepted=row["accepted"], rejected=rejected)
    return ledger


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Estimates of one collection beside the truth; D days, S values, shares in [0, 1] scale.

    Attributes:
        collection: what was asked.
        days: of the windows.
        values: the estimated ones.
        sensitive: (S,) bool.
        num_reports: (D,).
        estimate, low, high: (D, S) unbiased estimate and its 95 % interval, cut to [0, 1].
        margin: (D, S) 1.96 standard errors.
        distribution: (D, S) the estimator's result, which is a distribution.
        smoothed, smoothed_low, smoothed_high: (D, S) what the day and its neighbours say, and its 95 % interval.
        changes: of days on which shares moved against the days before, what moved.
        unexplained: (D,) the estimated share of people with none of the values.
        truth: (D, S).
    """

    collection: Collection
    days: list[datetime.date]
    values: list[str]
    sensitive: np.ndarray
    num_reports: np.ndarray
    estimate: np.ndarray
    margin: np.ndarray
    low: np.ndarray
    high: np.ndarray
    distribution: np.ndarray
    smoothed: np.ndarray
    smoothed_low: np.ndarray
    smoothed_high: np.ndarray
    changes: dict[datetime.date, str]
    unexplained: np.ndarray
    truth: np.ndarray

    @property
    def epsilon(self) -> float:
        return self.collection.mechanism.epsilon

    @property
    def unlisted(self) -> np.ndarray:
        """(D,) the true share of people with none of the values."""
        return 1 - self.truth.sum(axis=1)

    @property
    def covered(self) -> np.ndarray:
        """(D, S) bool: whether the interval contains the truth."""
        return (self.low <= self.truth) & (self.truth <= self.high)

    @property
    def covered_smoothed(self) -> np.ndarray:
        """(D, S) bool: whether the smoothed interval contains the truth."""
        return (self.smoothed_low <= self.truth) & (self.truth <= self.smoothed_high)

    @property
    def gain(self) -> float:
        """By how much smaller the squared l2 distance of the smoothed shares is, over all days."""
        alone, smoothed = (((shares - self.truth) ** 2).sum() for shares in (self.distribution, self.smoothed))
        return float(alone / smoothed)

    @property
    def total_variation(self) -> np.ndarray:
        """(D,) the share of people whom the estimated distribution puts at a wrong value."""
        return (np.abs(self.distribution - self.truth).sum(axis=1) + np.abs(self.unexplained - self.unlisted)) / 2

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """What to judge separately: name -> (S,) bool."""
        if self.sensitive.all():
            return {"all values": self.sensitive}
        return {"clear values": ~self.sensitive, "sensitive values": self.sensitive}

    def group(self, value: str) -> str:
        """The name of the value's group."""
        return next(name for name, mask in self.groups.items() if mask[self.values.index(value)])


def read_changes(output: Path, collection_id: str) -> dict[datetime.date, str]:
    """What the health rows say of shares that moved, by day."""
    rows = [row for row in read_rows(output / "health.jsonl") if row["collection_id"] == collection_id]
    found = {row["window_start"]: entry for row in rows for entry in row["findings"] if entry["name"] == "change"}
    return {_day_of(start): entry["sentence"] for start, entry in sorted(found.items()) if entry["fired"]}


def _day_of(window_start: str) -> datetime.date:
    return datetime.date.fromisoformat(window_start[:10])


def compare(
    collection: Collection, rows: list[dict[str, Any]], truth: Truth, changes: dict[datetime.date, str]
) -> Outcome:
    """The estimates of all windows beside the truth."""

    def column(name: str) -> np.ndarray:
        return np.array([[entry[name] for entry in row["estimates"]] for row in rows])

    values = [entry["value"] for entry in rows[0]["estimates"]]
    windows = [truth[row["window_start"]] for row in rows]
    return Outcome(
        collection=collection,
        days=[_day_of(row["window_start"]) for row in rows],
        values=values,
        sensitive=np.isin(values, collection.alphabet.to_json().get("sensitive") or values),
        num_reports=np.array([row["num_reports"] for row in rows]),
        estimate=column("raw_frequency").clip(0, 1),
        margin=1.96 * column("standard_error"),
        low=column("ci_low"),
        high=column("ci_high"),
        distribution=column("frequency"),
        smoothed=column("smoothed_frequency"),
        smoothed_low=column("smoothed_low"),
        smoothed_high=column("smoothed_high"),
        changes=changes,
        unexplained=np.array([row["unexplained_mass"] for row in rows], dtype=float),  # nan: too uncertain
        truth=np.array([[window[value] / window.total() for value in values] for window in windows]),
    )


def cell(outcome: Outcome, day: int, value: str) -> dict[str, float]:
    """One value on one day, shares in percent; empty if the value is not a candidate."""
    if value not in outcome.values:
        return {}
    at = day, outcome.values.index(value)
    return {name: 100 * float(getattr(outcome, name)[at]) for name in ("truth", "estimate", "low", "high", "covered")}


def shown_values(closed: Outcome, day: int, number: int) -> tuple[list[str], list[str]]:
    """The values with the most people on a day, most first, and the sensitive ones."""
    order = np.argsort(-closed.truth[day], kind="stable")
    return [closed.values[i] for i in order[:number]], [closed.values[i] for i in np.flatnonzero(closed.sensitive)]


# ------------------------------------------------------------------------------------------------------------ text


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def date_text(day: datetime.date) -> str:
    return f"{day:%A}, {day.day} {day:%B %Y}"


def spread(numbers: np.ndarray) -> str:
    return f"{numbers.min():,} to {numbers.max():,}"


def day_table(outcomes: list[Outcome], day: int) -> Iterator[str]:
    """The 12 busiest airports of one day and some sensitive ones."""
    closed = outcomes[1]
    common, sensitive = shown_values(closed, day, 12)
    yield f"{date_text(closed.days[day])}: share of departures in percent, 95 % intervals"
    yield f"{'':15}" + "".join(f"  {outcome.collection.id:^27}" for outcome in outcomes)
    yield "airport   truth" + "    estimate        interval " * len(outcomes)
    for value in [*common, *sensitive[:5]]:
        line = f"{value} {'*' if value in sensitive else ' '}  {cell(closed, day, value)['truth']:8.2f}"
        for entry in (cell(outcome, day, value) for outcome in outcomes):
            if not entry:
                line += f"    {'not a candidate':25}"
                continue
            miss = " " if entry["covered"] else "!"
            line += f"    {entry['estimate']:8.2f}  {entry['low']:5.2f} to {entry['high']:5.2f}{miss}"
        yield line.rstrip()
    yield f"others {100 * outcomes[0].unlisted[day]:8.2f}    {100 * outcomes[0].unexplained[day]:8.2f}"
    yield f"* sensitive   ! truth outside the interval   others: all but the {len(outcomes[0].values)} candidates"


def coverage(outcomes: list[Outcome]) -> Iterator[tuple[Outcome, str, int, int]]:
    """Collection, group, intervals that contain the truth, intervals; over all days."""
    for outcome in outcomes:
        for group, mask in outcome.groups.items():
            yield outcome, group, int(outcome.covered[:, mask].sum()), outcome.covered[:, mask].size


def summary(demo: Demo, outcomes: list[Outcome], ledger: dict[str, collections.Counter[Any]]) -> Iterator[str]:
    """Reports, guarantee, precision, coverage and ledger."""
    for outcome in outcomes:
        yield (
            f"{outcome.collection.id}: epsilon {outcome.epsilon:g}, {spread(outcome.num_reports)} reports a day, total "
            f"variation distance {percent(outcome.total_variation.mean())} (mean of {len(outcome.days)} days)"
        )
    for outcome, group, covered, number in coverage(outcomes):
        share = percent(covered / number)
        yield f"{outcome.collection.id}, {group}: {covered:,} of {number:,} intervals contain the truth ({share})"
    for outcome in outcomes:
        held, name = outcome.covered_smoothed, outcome.collection.id
        yield (
            f"{name}, smoothed over days: {held.sum():,} of {held.size:,} intervals ({percent(held.mean())}), "
            f"squared l2 distance {outcome.gain:.1f} times smaller"
        )
        yield from (f"{name}, {date_text(day)}: {sentence}" for day, sentence in outcome.changes.items())
    for name, account in ledger.items():
        yield (
            f"{name}, ledger: {account['received']:,} received = {account['accepted']:,} accepted + "
            f"{account['rejected']:,} rejected: {balance(account)}"
        )
    yield f"randomness of the reports: {demo.randomness}"


def balance(account: collections.Counter[Any]) -> str:
    """Whether no report was lost or came from nowhere."""
    complete = account["sent"] == account["received"] == account["accepted"] + account["rejected"]
    return "balanced" if complete else "NOT BALANCED"


# --------------------------------------------------------------------------------------------------------- picture

BLUE, RED, GREEN = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito: safe for colour-blind readers
COLOURS = {"all values": BLUE, "clear values": RED, "sensitive values": GREEN}
NAMES = {
    "all values": "open alphabet: all airports protected",
    "clear values": "closed alphabet: common airports",
    "sensitive values": "closed alphabet: sensitive airports",
}


def draw(demo: Demo, outcomes: list[Outcome], day: int, path: Path) -> None:
    """The picture: airports by day, people whom the list lacks, precision, coverage, one day in full."""
    from matplotlib import rc_context  # noqa: PLC0415  # an optional extra
    from matplotlib.figure import Figure  # noqa: PLC0415  # without pyplot: Agg, no window system
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415

    first = outcomes[0]
    caption = (
        f"{spread(first.num_reports)} people a day, with one report each of epsilon = {first.epsilon:g} (open) and of "
        f"epsilon = {outcomes[1].epsilon:g} (closed). Bands and bars: 95 % intervals.\n"
        "Dots and wide bands: days alone, unbiased, cut at 0. Lines and narrow bands: smoothed over days. "
        "Dotted: a share moved.\n"
        f"Randomness of the reports: {demo.randomness}. Data: US flights of 2001, Bureau of Transportation Statistics."
    )
    style: dict[Any, Any] = {
        "font.size": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
    }
    style |= {"axes.titlesize": 11.5, "axes.titleweight": "bold", "axes.titlepad": 8, "axes.edgecolor": "#888888"}
    with rc_context(style):
        layout = ConstrainedLayoutEngine(rect=(0.008, 0.064, 0.984, 0.851))
        figure: Any = Figure(figsize=(16, 12.6), layout=layout)
        title = "Where people fly from, learned from reports that hide each answer"
        figure.text(0.012, 0.967, title, size=24, weight="bold")
        figure.text(0.012, 0.012, caption, size=10.5, color="#555555", linespacing=1.5)
        at = 0.012
        for words, colour in [*((NAMES[group], COLOURS[group]) for group in COLOURS), ("the truth", "black")]:
            label = figure.text(at, 0.936, f"\N{BLACK CIRCLE} {words}", size=13.5, color=colour, weight="bold")
            at += label.get_window_extent().width / figure.bbox.width + 0.02
        left, right = figure.subfigures(1, 2, width_ratios=(2.25, 1))
        upper, lower = left.subfigures(2, 1, height_ratios=(1.75, 1))
        draw_days(upper.subplots(2, 3).flat, outcomes)
        panels = lower.subplots(1, 3)
        draw_unlisted(panels[0], first)
        draw_precision(panels[1], outcomes)
        draw_coverage(panels[2], outcomes)
        draw_day(right.subplots(), outcomes, day)
        figure.savefig(path, dpi=125)


def draw_days(panels: Iterable[Any], outcomes: list[Outcome]) -> None:
    """Airports of very different size, day by day, in both collections.

    Dots and wide bands are the days alone, lines and narrow bands smoothed; dotted lines say that the share moved.
    """
    month = np.argsort(-outcomes[0].truth.mean(axis=0), kind="stable")
    for axes, rank in zip(panels, (1, 2, 4, 8, 16, 32)):
        value = outcomes[0].values[month[rank - 1]]
        for outcome, colour in zip(outcomes, (BLUE, RED)):
            days, i = [day.day for day in outcome.days], outcome.values.index(value)
            for low, high, alpha in (("low", "high", 0.14), ("smoothed_low", "smoothed_high", 0.3)):
                band = (100 * getattr(outcome, name)[:, i] for name in (low, high))
                axes.fill_between(days, *band, color=colour, alpha=alpha, lw=0)
            axes.plot(days, 100 * outcome.estimate[:, i], "o", color=colour, ms=3.6)
            axes.plot(days, 100 * outcome.smoothed[:, i], color=colour, lw=1.4)
            for day in (day.day for day, sentence in outcome.changes.items() if repr(value) in sentence):
                axes.axvline(day, color=colour, lw=1.2, ls=":")
            axes.plot(days, 100 * outcome.truth[:, i], color="black", lw=1.6, zorder=3)
        axes.set_title(f"{value}, no. {rank} of {len(outcomes[1].values)} airports, by day")
        _day_axes(axes, outcomes[0])


def draw_unlisted(axes: Any, outcome: Outcome) -> None:
    """The share of people whose value the collector did not think of."""
    days = [day.day for day in outcome.days]
    axes.plot(days, 100 * outcome.unexplained, "o", color=BLUE, ms=3.6)
    axes.plot(days, 100 * outcome.unlisted, color="black", lw=1.6)
    axes.axhline(100 * outcome.unexplained.mean(), color=BLUE, lw=1.2, ls="--")
    axes.set_title(f"At none of the {len(outcome.values)} candidates\n(dashed: mean of the days)")
    _day_axes(axes, outcome)


def _day_axes(axes: Any, outcome: Outcome) -> None:
    days = [day.day for day in outcome.days]
    axes.set_xticks(days[::7], [f"{day.day} {day:%b}" for day in outcome.days[::7]])
    axes.set_xlim(days[0] - 0.6, days[-1] + 0.6)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.grid(axis="y", color="#e6e6e6")


def draw_precision(axes: Any, outcomes: list[Outcome]) -> None:
    """The standard error of one day against the share of the value."""
    for outcome in outcomes:
        for group, mask in outcome.groups.items():
            share, error = 100 * outcome.truth[:, mask].mean(axis=0), 100 * outcome.margin[:, mask].mean(axis=0)
            axes.scatter(share, error, s=16, color=COLOURS[group], alpha=0.75, lw=0)
            axes.text(np.median(share), 0.6 * np.median(error), group, color=COLOURS[group], weight="bold")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.12)
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.set_xlabel("true share of the airport")
    axes.grid(color="#e6e6e6")
    axes.set_title("Precision of one day: \N{PLUS-MINUS SIGN} 1.96\nstandard errors")


def draw_coverage(axes: Any, outcomes: list[Outcome]) -> None:
    """How often intervals contain the truth."""
    lines = list(coverage(outcomes))
    axes.axvline(95, color="black", lw=1.2, ls="--", zorder=0)
    for row, (_, group, covered, number) in enumerate(lines):
        share = 100 * covered / number
        axes.plot(share, -row, "o", color=COLOURS[group], ms=11)
        text = f"{group}: {share:.1f} %\n{covered:,} of {number:,}"
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(95.5, -row + 0.2, text, va="bottom", color=COLOURS[group], weight="bold", bbox=white, zorder=1)
    axes.set_xlim(min(90, *(100 * covered / number - 2 for *_, covered, number in lines)), 100.5)
    axes.set_ylim(-len(lines) + 0.6, 0.8)
    axes.set_yticks([])
    axes.spines.left.set_visible(False)
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.set_xlabel("of all days and airports; promised: 95 %")
    axes.set_title("How often the intervals contain\nthe truth")


def draw_day(axes: Any, outcomes: list[Outcome], day: int) -> None:
    """One day: the busiest airports and the sensitive ones, estimates with intervals against the truth."""
    common, sensitive = shown_values(outcomes[1], day, 25)
    rows = [*common, "", *sensitive]
    for row, value in enumerate(rows):
        for outcome, shift in zip(outcomes, (-0.2, 0.2)):
            if entry := cell(outcome, day, value):
                colour = COLOURS[outcome.group(value)]
                axes.plot([entry["low"], entry["high"]], [row + shift] * 2, color=colour, lw=2.4, alpha=0.5)
                axes.plot(entry["estimate"], row + shift, "o", color=colour, ms=4.5)
                axes.plot([entry["truth"]] * 2, [row - 0.42, row + 0.42], color="black", lw=1.6)
    axes.set_yticks([row for row, value in enumerate(rows) if value], [value for value in rows if value])
    axes.set_ylim(len(rows) - 0.3, -0.8)
    axes.set_xlim(left=-0.06)
    axes.text(0, len(common) + 0.1, "sensitive airports", va="center", color=GREEN, weight="bold")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e6e6e6")
    axes.xaxis.set_major_formatter("{x:g} %")
    axes.set_xlabel("share of the day's departures")
    axes.set_title(
        f"{date_text(outcomes[0].days[day])}:\nthe {len(common)} busiest and the {len(sensitive)} sensitive airports"
    )


# ------------------------------------------------------------------------------------------------------------ page

FILES = {
    "estimates.jsonl": "estimates, one JSON object per collection and day",
    "estimates.avro": "the same as Avro",
    "ledger.jsonl": "the ledger, one JSON object per collection and day",
    "health.jsonl": "what the sentinels say, one JSON object per collection and day",
    "rejected.avro": "rejected reports",
    "reports/us-flights.avro": "all that the collector got: reports of the open alphabet",
    "reports/us-flights-sensitive.avro": "and of the closed one",
    "estimates.png": "the picture",
}

BAR = 230  # pixels
STYLES = {"all values": "open", "clear values": "clear", "sensitive values": "sensitive"}

PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where people fly from, learned privately</title>
<style>
:root { --open: $blue; --clear: $red; --sensitive: $green; --line: #dde3e8; --soft: #5b6670; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 1180px; color: #1c2329; background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.8rem; line-height: 1.15; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; }
p { margin: 0 0 .6rem; }
.lead { font-size: 1.12rem; max-width: 62rem; color: #37424b; }
.note { color: var(--soft); font-size: .9rem; max-width: 62rem; }
.mark { display: inline-block; background: #fff3d6; border: 1px solid #e3c36a; border-radius: 4px; padding: 0 .5rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(310px, 1fr)); gap: 1rem; margin-top: 1.3rem; }
.cards > div { border: 1px solid var(--line); border-top: 4px solid #37424b; border-radius: 6px; padding: 1rem 1.1rem; }
.cards p { font-size: .95rem; }
.cards table { width: 100%; margin: 0 0 .7rem; line-height: 1.3; }
.cards td, .cards th { padding: .2rem .15rem; font-size: .85rem; }
.open { color: var(--open); } .clear { color: var(--clear); } .sensitive { color: var(--sensitive); }
b.open, b.clear, b.sensitive { white-space: nowrap; }
img { width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .16rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { border-bottom: 2px solid #9aa6b0; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
td.miss { background: #fdeee6; }
td svg { display: block; width: ${bar}px; height: 14px; }
th[colspan], td[colspan] { text-align: center; }
.wide { overflow-x: auto; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .35rem 0; padding: .45rem .9rem; }
summary { cursor: pointer; font-weight: 600; }
summary span { font-weight: 400; color: var(--soft); margin-left: .8rem; }
details table { margin: .7rem 0; }
pre { background: #f4f6f8; border-radius: 6px; padding: .8rem 1rem; white-space: pre-wrap; font-size: .88rem; }
li { margin: .1rem 0; }
</style>
</head>
<body>
<h1>Where people fly from, learned from reports that hide each answer</h1>
<p class="lead">On $num_days days, $people people (one for each departure from a US airport) were asked where
they were. Nobody sent the answer as it is. Every device perturbed it first, and the collector worked out how many
people were at each airport, every day, from the perturbed reports alone. $mark</p>

<div class="cards">
<div>
<h3>What each person sent</h3>
<p><b class="open">Open alphabet.</b> Two small numbers: one of $cohorts public hash functions, drawn at random, and the
bucket, of $buckets, into which it puts the airport. But the bucket is right with probability $right only; else it is
one of the others. The device needs no list of airports.</p>
<p><b class="clear">Closed alphabet.</b> The name of an airport: with probability $kept the right one, else any of the
$num_sensitive <b class="sensitive">sensitive airports</b> ($sensitive_list), wherever the person is.</p>
<p>Every report also carries its time, which says in which day it counts, and a random number as its name. These are not
perturbed.</p>
</div>
<div>
<h3>What the collector learned</h3>
<p>No single report can be believed. But the chances are known, so that their effect on many reports can be taken out
again. The left column says how well one airport's share of one day is then known (1.96 standard errors, in percentage
points), the right one how often the 95 % intervals contain the truth:</p>
<table>
<tr><th></th><th>to within</th><th>truth in it</th></tr>
$precision
</table>
<p>The collector of the open alphabet also learned that $unexplained of the people were at none of the $num_candidates
airports it had thought of (mean of the days; in truth $unlisted).</p>
</div>
<div>
<h3>What is protected</h3>
<p>A protected report is at most e<sup>epsilon</sup>&nbsp;=&nbsp;$ratio times likelier from one airport than from any
other (epsilon&nbsp;=&nbsp;$epsilon). Whoever held two airports for equally likely can be at most $sure sure after
seeing it.</p>
<p><b class="open">Open alphabet:</b> every report is protected. <b class="clear">Closed alphabet:</b> every report that
names a <b class="sensitive">sensitive airport</b> is protected, and the people who are at one send no other. People at
a common airport may be seen there; that is the price of the better estimates.</p>
<p>The guarantee is one for each report: two reports of one person have twice the epsilon.</p>
</div>
</div>

<h2>The picture</h2>
<img alt="$alt" src="data:image/png;base64,$png">
<p class="note">An interval of 95 % misses the truth once in twenty times, and should. Intervals of values sent in clear
contain it more often: they are exact for small counts, and they allow for who happened to fly that day, while the truth
here counts just those people. Total variation distance of one day, the share of people whom the estimated distribution
puts at a wrong airport: $variation. The mean of the unlisted people need not meet the truth, however many the days:
what the unlisted airports collide with is the same every day, because the hash functions are.</p>

<h2>Day by day</h2>
<p class="note">Shares of the day's departures in percent: the 25 busiest airports of the day, then the
<span class="sensitive">sensitive</span> ones. In the bars the line is the 95 % interval, the dot the estimate, the
black tick the truth. <span style="background:#fdeee6">&nbsp;Shaded&nbsp;</span>: the interval misses the truth.</p>
$days

<h2>Ledger: what became of every report</h2>
<div class="wide"><table>
<tr><th>collection</th><th>sent</th><th>received</th><th>accepted</th><th>rejected</th><th></th></tr>
$ledger
</table></div>
<p class="note">Received = accepted + rejected, for each collection and day, in ledger.jsonl.</p>

<h2>Make it again</h2>
<pre>$command</pre>
<p>Within it the main job, which sees nothing but reports:</p>
<pre>$job</pre>
<p>Randomness of the reports: $randomness.</p>

<h2>Files</h2>
<ul>
$files
</ul>
<p class="note">Data: flights of 14 February to 16 March 2001, US Bureau of Transportation Statistics (public domain),
local times taken as UTC. Departures stand for people; no person's data are in it.</p>
</body>
</html>
""")


def page(
    demo: Demo, outcomes: list[Outcome], ledger: dict[str, collections.Counter[Any]], busiest: int, output: Path
) -> str:
    """A page that needs nothing but itself."""
    first, closed = outcomes
    hidden, revealing = first.collection.mechanism, closed.collection.mechanism
    sensitive = shown_values(closed, busiest, 0)[1]
    mark = "" if demo.seed is None else f'<span class="mark">Randomness: {escape(demo.randomness)}.</span>'
    variation = " and ".join(percent(outcome.total_variation.mean()) for outcome in outcomes)
    command = ["python", "-m", "pipelines.estimate", *estimate_arguments(Path("pipelines/data"), Path(demo.output))]
    return PAGE.substitute(
        blue=BLUE,
        red=RED,
        green=GREEN,
        bar=BAR,
        num_days=len(first.days),
        people=f"{first.num_reports.sum():,}",
        mark=mark,
        cohorts=first.collection.num_cohorts,
        buckets=hidden.num_symbols,
        right=percent(hidden.response(np.eye(1, hidden.num_symbols)[0])[0]),
        kept=percent(revealing.reveal_rate),
        num_sensitive=revealing.num_sensitive,
        sensitive_list=escape(", ".join(sensitive)),
        precision="\n".join(_precision_html(*line) for line in coverage(outcomes)),
        num_candidates=len(first.values),
        unexplained=percent(first.unexplained.mean()),
        unlisted=percent(first.unlisted.mean()),
        epsilon=f"{first.epsilon:g}",
        ratio=f"{math.exp(first.epsilon):.1f}",
        sure=percent(1 / (1 + math.exp(-first.epsilon))),
        alt="Estimates with 95 % intervals and the truth: airports by day, one day in full, precision and coverage",
        png=base64.b64encode((output / "estimates.png").read_bytes()).decode("ascii"),
        variation=variation,
        days="\n".join(_day_html(outcomes, day, opened=day == busiest) for day in range(len(first.days))),
        ledger="\n".join(_ledger_html(name, account) for name, account in ledger.items()),
        command=escape(demo.command),
        job=escape(shlex.join(command)),
        randomness=escape(demo.randomness),
        files="\n".join(f'<li><a href="{name}">{name}</a>: {what}</li>' for name, what in FILES.items()),
    )


def _precision_html(outcome: Outcome, group: str, covered: int, number: int) -> str:
    margin = 100 * outcome.margin[:, outcome.groups[group]].mean()
    return (
        f'<tr class="{STYLES[group]}"><td>{NAMES[group].replace(": ", ":<br>")}</td>'
        f"<td><b>\N{PLUS-MINUS SIGN} {margin:.2f}</b></td>"
        f"<td><b>{percent(covered / number)}</b><br>of {number:,}</td></tr>"
    )


def _day_html(outcomes: list[Outcome], day: int, opened: bool) -> str:
    common, sensitive = shown_values(outcomes[1], day, 25)
    scale = 1.05 * max(100 * outcome.high[day].max() for outcome in outcomes)
    rows = []
    for value in [*common, *sensitive]:
        entries = [cell(outcome, day, value) for outcome in outcomes]
        style = "sensitive" if value in sensitive else "clear"
        cells = "".join(map(_cell_html, entries, ("open", style), (scale, scale)))
        name = f'<b class="sensitive">{escape(value)}</b>' if value in sensitive else escape(value)
        rows.append(f"<tr><td>{name}</td><td>{entries[1]['truth']:.2f}</td>{cells}</tr>")
    heads = "".join(f'<th colspan="3">{escape(outcome.collection.id)}: estimate, interval</th>' for outcome in outcomes)
    return (
        f"<details{' open' if opened else ''}><summary>{date_text(outcomes[0].days[day])}"
        f"<span>{outcomes[0].num_reports[day]:,} people; at none of the candidates: "
        f"{percent(outcomes[0].unexplained[day])} (truth {percent(outcomes[0].unlisted[day])})</span></summary>"
        f'<div class="wide"><table><tr><th>airport</th><th>truth</th>{heads}</tr>\n' + "\n".join(rows)
    ) + "</table></div></details>"


def _cell_html(entry: dict[str, float], style: str, scale: float) -> str:
    if not entry:
        return '<td colspan="3">not a candidate</td>'
    low, high, estimate, truth = (BAR * entry[name] / scale for name in ("low", "high", "estimate", "truth"))
    return (
        f'<td>{entry["estimate"]:.2f}</td><td class="{"hit" if entry["covered"] else "miss"}">{entry["low"]:.2f} to '
        f'{entry["high"]:.2f}</td><td><svg class="{style}" viewBox="0 0 {BAR} 14">'
        f'<path d="M{low:.1f} 7H{high:.1f}" stroke="currentColor" stroke-width="3" opacity=".5"/>'
        f'<circle cx="{estimate:.1f}" cy="7" r="3.2" fill="currentColor"/>'
        f'<path d="M{truth:.1f} 1V13" stroke="#000" stroke-width="1.6"/></svg></td>'
    )


def _ledger_html(name: str, account: collections.Counter[Any]) -> str:
    numbers = "".join(f"<td>{account[part]:,}</td>" for part in ("sent", "received", "accepted", "rejected"))
    return f"<tr><td>{escape(name)}</td>{numbers}<td>{balance(account)}</td></tr>"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("demo", configure, job, argv)


if __name__ == "__main__":
    sys.exit(main())
