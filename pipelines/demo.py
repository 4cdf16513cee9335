"""The demo: clients simulated on real flights, the main job, and what the collector learns, beside the truth.

Every departure from a US airport from 14 February to 16 March 2001 stands for one person, who is asked once in each of
two collections:

- ``us-flights``: an open alphabet (hashed, k-RR). All values are protected; the collector has candidates only.
- ``us-flights-sensitive``: a closed alphabet (uRR). The airports with the fewest departures are sensitive; the others
  are reported in clear part of the time, and become much more precise.

Reports, estimates, ledger, rejected reports, a picture and a page are written into the output directory, these two by
``uldp report``. Only this program knows the truth; the job sees nothing but reports.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
import datetime
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import rfc3339

from . import cli, estimate, simulate
from .check import latest_rows
from .report.gathering import Asked
from .report.report_command import require_charts
from .report.report_command import write as write_report
from .report.truth_file import Truth
from .runs import read_lines
from .values import ValuesFile

DATA = Path(__file__).with_name("data")
VALUES, CANDIDATES = "flights_2001_03.csv.gz", "airports.txt"
OPEN, SENSITIVE = "flights_open.json", "flights_sensitive.json"
REPORTS_PER_MESSAGE = 1000
TITLE = "Where people fly from, learned from reports that hide each answer"
DAY = 86_400_000

Departures = dict[str, collections.Counter[Any]]
"""Start of a window -> departures by airport."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Demo:
    """What to do and where to."""

    output: str
    days: int | None
    seed: int | None

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
    require_charts()
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
        say("drawing estimates.png, writing index.html (uldp report)")
        page = Asked(directory=str(output), title=TITLE, truth=Truth(str(values), "value"))
        write_report(page, str(output / "index.html"), str(output / "estimates.png"))
    say("comparing with the truth")
    outcomes = [
        compare(spec, read_estimates(output, spec.id), truth, read_changes(output, spec.id)) for spec in specs.values()
    ]
    ledger = read_ledger(output, {spec.id: people for spec in specs.values()})
    busiest = int(outcomes[0].num_reports.argmax())
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


def read_truth(days: int | None, scratch: Path) -> tuple[Path, Departures]:
    """The file of values to report and the truth about them; of the first ``days`` only, in ``scratch``, if given."""
    values, times = map(np.concatenate, zip(*ValuesFile(str(DATA / VALUES)).read(1 << 20)))
    starts = times // DAY * DAY
    used = starts < starts[0] + (days or len(starts)) * DAY
    truth: Departures = collections.defaultdict(collections.Counter)
    for start in np.unique(starts[used]):
        truth[rfc3339(int(start))].update(values[starts == start].tolist())
    if used.all():
        return DATA / VALUES, truth
    path = scratch / "values.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("value", "event_time"), *zip(values[used], times[used] / 1000)])
    return path, truth


def read_estimates(output: Path, collection_id: str) -> list[Mapping[str, Any]]:
    """One row per window, in order of time: the one that counts, as for every consumer."""
    rows = (row for row in read_lines([str(output / "estimates.jsonl")]) if row["collection_id"] == collection_id)
    return sorted(latest_rows(rows), key=lambda row: row["window_start"])


def read_ledger(output: Path, sent: dict[str, int]) -> dict[str, collections.Counter[Any]]:
    """Sent, received, accepted and rejected reports of each collection, all windows together."""
    ledger = {collection_id: collections.Counter(sent=number) for collection_id, number in sent.items()}
    for row in read_lines([str(output / "ledger.jsonl")]):
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
    rows = [row for row in read_lines([str(output / "health.jsonl")]) if row["collection_id"] == collection_id]
    found = {row["window_start"]: entry for row in rows for entry in row["findings"] if entry["name"] == "change"}
    return {_day_of(start): entry["sentence"] for start, entry in sorted(found.items()) if entry["fired"]}


def _day_of(window_start: str) -> datetime.date:
    return datetime.date.fromisoformat(window_start[:10])


def compare(
    collection: Collection, rows: list[Mapping[str, Any]], truth: Departures, changes: dict[datetime.date, str]
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


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("demo", configure, job, argv)


if __name__ == "__main__":
    sys.exit(main())
