"""The demo: simulates clients on real flights, runs the main job, and compares the estimates with the truth.

Every departure from a US airport from 14 February to 16 March 2001 stands for one person, who is asked once in each of
three collections:

- ``us-flights``: an open alphabet (hashed, k-RR). All values are protected; the collector has candidates only.
- ``us-flights-sensitive``: a closed alphabet (uRR). The airports with the fewest departures are sensitive; the others
  are sometimes reported in clear, so their estimates are much more precise.
- ``us-flights-delays``: the arrival delay, a number (square wave).

The output directory gets reports, estimates, ledger, rejected reports, and a picture and a page, which ``uldp report``
makes. Only this program knows the truth; the job sees nothing but reports.
"""

from __future__ import annotations

import collections
import dataclasses
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labs.demo.delays import LIMITS, Delays, delay_lines
from labs.demo.demo_outcome import Departures, compare, read_changes, read_estimates, read_ledger
from labs.demo.demo_text import day_table, summary
from labs.demo.departures import read_departures, write_departures
from uldp_transforms.jobs import cli, estimate
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.jobs.reestimate.reestimate_command import configure as reestimation
from uldp_transforms.jobs.reestimate.reestimate_command import write_periods
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import rfc3339
from uldp_transforms_tables.simulate import simulate_command as simulate
from uldp_transforms_tables.values_file import ValuesFile

DATA = Path(__file__).with_name("data")
VALUES, CANDIDATES = "flights_2001_03.csv.bz2", "airports.txt"
OPEN, SENSITIVE = "flights_open.json", "flights_sensitive.json"
DELAYS, DELAY_VALUES = "flights_delays.json", "delays_2001_03.csv.bz2"
REPORTS_PER_MESSAGE = 1000
TITLE = "Where people fly from, learned from reports that hide each answer"
DAY = 86_400_000

STORM = 20
"""Days from the first one to Monday, 5 March 2001, when a snow storm stopped the airports of the north-east."""

NOTE = (
    "Each departure from a US airport, on {days} days from 14 February 2001 on, stands for one person, who answers "
    "three questions. On 5 March a snow storm stopped the north-east: see BOS and LGA."
)
"""What the page is about, under its title; the last sentence only if the page has that day."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Demo:
    """Options of the demo."""

    output: str
    days: int | None
    seed: int | None

    @property
    def randomness(self) -> str:
        return "the operating system's" if self.seed is None else f"seeded ({self.seed}), for simulation only"


def configure(argv: Sequence[str]) -> Demo:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", default="demo-output", help="directory for all files")
    parser.add_argument("--days", type=cli.positive(), help="number of days, from the first (default: all)")
    parser.add_argument("--seed", type=int, help="seed for reproducible reports (default: secure random numbers)")
    demo = Demo(**vars(parser.parse_args(argv)))
    if demo.seed is not None and not 0 <= demo.seed < 1 << 63:
        raise SpecError(f"--seed must be a whole number from 0 to 2**63 - 1, got {demo.seed}")
    drawing("report")
    Path(demo.output, "reports").mkdir(parents=True, exist_ok=True)
    return demo


def job(demo: Demo) -> int:
    """Run the demo."""
    output, began = Path(demo.output), time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:3.0f} s] {text}", flush=True)

    say(f"reading {VALUES}")
    specs = {name: Collection.from_json(DATA / name) for name in (OPEN, SENSITIVE)}
    with tempfile.TemporaryDirectory() as scratch:
        values, truth = read_truth(demo.days, Path(scratch))
        delays, number = Delays.read(DATA / DELAY_VALUES, demo.days), Collection.from_json(DATA / DELAYS)
        minutes = Path(scratch) / "delays.parquet"
        delays.write(minutes)
        asked = [(OPEN, specs[OPEN], values), (SENSITIVE, specs[SENSITIVE], values), (DELAYS, number, minutes)]
        people = sum(day.total() for day in truth.values())
        for place, (name, spec, file) in enumerate(asked):
            say(f"simulating {people:,} clients of {spec.id}")
            seed = None if demo.seed is None else seed_of(demo.seed, place)
            if code := simulate.main(simulate_arguments(name, file, output / "reports" / f"{spec.id}.avro", seed)):
                return code
        say(f"estimating from {len(asked) * people:,} reports (the main job)")
        if code := estimate.main(estimate_arguments(DATA, output)):
            return code
        candidates = ["--candidates", str(DATA / CANDIDATES)]
        write_periods(reestimation([str(output), "--window", "all", *candidates, *limits()]))
        say("drawing estimates.png, writing index.html (uldp report)")
        from uldp_transforms_report.gathering import Asked  # noqa: PLC0415  # configure says how to get it
        from uldp_transforms_report.truth_file import Truth  # noqa: PLC0415  # as above
        from uldp_transforms_report.written_report import write  # noqa: PLC0415  # as above

        note = note_of(len(truth))
        page = Asked(directory=str(output), title=TITLE, note=note, truth=Truth(ValuesFile(str(values))))
        write(page, str(output / "index.html"), str(output / "estimates.png"))
    say("comparing with the truth")
    outcomes = [
        compare(spec, read_estimates(output, spec.id), truth, read_changes(output, spec.id)) for spec in specs.values()
    ]
    ledger = read_ledger(output, {spec.id: people for _, spec, _ in asked})
    busiest = int(outcomes[0].num_reports.argmax())
    told = delay_lines(number.id, read_estimates(output, number.id), delays)
    print("", *day_table(outcomes, busiest), "", *told, *summary(outcomes, ledger, demo.randomness), "", sep="\n")
    look = "; look at BOS and LGA on 5 March, the day of a snow storm" if len(truth) >= STORM else ""
    say(f"done: open {output / 'index.html'}{look}")
    return cli.DONE


def note_of(days: int) -> str:
    """The sentences under the title of the page."""
    said = NOTE.format(days=days)
    return said if days >= STORM else said.partition(" On 5 March")[0]


def simulate_arguments(collection: str, values: Path, output: Path, seed: int | None) -> list[str]:
    """The command line that simulates the clients."""
    arguments = [str(DATA / collection), "--values", str(values), "--output", str(output)]
    arguments += ["--form", "packed", "--pack", str(REPORTS_PER_MESSAGE)]
    return arguments if seed is None else [*arguments, "--seed", str(seed)]


def estimate_arguments(data: Path, output: Path) -> list[str]:
    """The command line of the main job: all collections together, with daily windows."""
    arguments = [f"--collection={data / name}" for name in (OPEN, SENSITIVE, DELAYS)] + limits()
    arguments += ["--candidates", str(data / CANDIDATES), "--window", "1d", "--smooth", "--write_counts"]
    return [*arguments, "--input", str(output / "reports" / "*.avro"), "--output", str(output)]


def limits() -> list[str]:
    """The limits of delays, as options."""
    return ["--limits", ",".join(map(str, LIMITS))]


def seed_of(seed: int, place: int) -> int:
    """A seed for each collection; those of the first two are as in earlier releases."""
    return 2 * seed + place if place < 2 else (1 << 62) + seed


def read_truth(days: int | None, scratch: Path) -> tuple[Path, Departures]:
    """A file of values to report, in ``scratch``, and the truth about them; if ``days`` is given, of the first
    days."""
    values, times = read_departures(DATA / VALUES)
    starts = times // DAY * DAY
    used = starts < starts[0] + (days or len(starts)) * DAY
    truth: Departures = collections.defaultdict(collections.Counter)
    for start in np.unique(starts[used]):
        truth[rfc3339(int(start))].update(values[starts == start].tolist())
    path = scratch / "values.parquet"
    write_departures(path, values[used], times[used])
    return path, truth


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("demo", configure, job, argv)
