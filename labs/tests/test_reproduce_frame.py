"""The program that repeats experiments, what all experiments share, and the data that they read."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.figure import Figure
from PIL import Image

from labs import reproduce
from labs.experiments import EXPERIMENTS, frame
from tests.support.tolerance import generator, normal_limit
from uldp_transforms.ldp import Collection

DATA = frame.DATA


class Dice(frame.Experiment):
    """A small experiment of its own: a loaded die, thrown by as many people as there are runs."""

    id = "dice"
    title = "Throws of a die"
    source = "nobody, figure 0"
    abstract = "People throw a die."

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> frame.Result:
        throws = frame.draw_people(np.array([0.5, 0.3, 0.2]), (runs or 10) * (1 if reduced else 10), rng)
        rows: list[dict[str, Any]] = [{"face": str(face), "throws": int(number)} for face, number in enumerate(throws)]
        rows.append({"face": "all", "share": 1 / 3})
        return frame.Result(
            rows=rows,
            verdicts=[
                frame.Verdict(claim="Every throw counts.", holds=throws.min() >= 0, evidence=f"{throws.sum()} throws."),
                frame.Verdict(claim="The die is fair.", holds=False, evidence="It is not."),
            ],
        )

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.subplots().bar([row["face"] for row in rows], [row.get("throws", 0) for row in rows])


def run(tmp_path: Path, *, seed: int = 0, reduced: bool = False, runs: int | None = None) -> tuple[str, str]:
    """What the experiment prints and the table that it writes."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = reproduce.job(
            reproduce.Reproduction(experiments=(Dice(),), output=tmp_path, runs=runs, reduced=reduced, seed=seed)
        )
    assert code == 0
    return printed.getvalue(), (tmp_path / "dice.csv").read_text("utf-8")


def test_writes_table_and_picture_and_prints_verdicts(tmp_path: Path) -> None:
    printed, table = run(tmp_path)
    rows = list(csv.DictReader(io.StringIO(table)))
    assert list(rows[0]) == ["face", "throws", "share", "seed", "reduced"]
    assert sum(int(row["throws"]) for row in rows[:3]) == 100
    assert (rows[3]["throws"], rows[3]["share"], rows[3]["seed"], rows[3]["reduced"]) == ("", str(1 / 3), "0", "0")
    assert (tmp_path / "dice.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (tmp_path / "dice.svg").read_text("utf-8")
    record = json.loads((tmp_path / "dice.json").read_text("utf-8"))
    assert (record["seed"], record["reduced"], record["runs"]) == (0, False, None)
    assert [verdict["holds"] for verdict in record["verdicts"]] == [True, False]
    assert "Throws of a die (nobody, figure 0)" in printed
    assert "holds: Every throw counts. 100 throws.\ndoes not hold: The die is fair. It is not.\n" in printed
    assert "seed 0, full size" in printed


def test_options_reach_the_experiment(tmp_path: Path) -> None:
    assert "20 throws" in run(tmp_path, runs=20, reduced=True)[0]
    assert "seed 7, reduced size" in run(tmp_path, seed=7, reduced=True)[0]


def test_a_seed_repeats_a_run_exactly(tmp_path: Path) -> None:
    first, again, other = (run(tmp_path, seed=seed)[1] for seed in (3, 3, 4))
    assert first == again
    assert first.replace(",3,", ",4,") != other


def test_all_experiments_are_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Coins(Dice):
        id = "coins"

    monkeypatch.setattr(reproduce, "EXPERIMENTS", (Dice(), Coins()))
    options = ["--all", "--output", str(tmp_path)]
    assert reproduce.main(options) == 0
    first = capsys.readouterr().out
    assert "[1/2] dice" in first
    assert "[2/2] coins" in first
    assert "finished earlier" not in first
    (tmp_path / "coins.json").write_text("{")  # as of a run that was stopped
    assert reproduce.main(options) == 0
    again = capsys.readouterr().out
    assert again.count("finished earlier with the same options") == 1
    assert again.count("Throws of a die") == 1
    assert reproduce.main([*options, "--seed", "1"]) == 0
    assert "finished earlier" not in capsys.readouterr().out


def test_equal_runs_make_equal_pictures(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        run(tmp_path / name)
    assert all(
        (tmp_path / "a" / f"dice.{kind}").read_bytes() == (tmp_path / "b" / f"dice.{kind}").read_bytes()
        for kind in ("csv", "png", "svg")
    )


def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(frame.progress([1, 2], "step")) == [1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(frame.progress([1, 2], "step")) == [1, 2]
    assert "step 2" in capsys.readouterr().err


def test_table_is_aligned() -> None:
    rows = [{"name": "a", "number": 1 / 3}, {"name": "long", "more": 12}]
    assert reproduce.table_lines(rows) == ["name  number  more", "a     0.3333", "long            12"]


def test_lists_all_experiments(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [experiment.id for experiment in EXPERIMENTS]
    assert len(set(lines)) == len(EXPERIMENTS) > 0


def test_every_experiment_says_what_it_is() -> None:
    for experiment in EXPERIMENTS:
        assert re.fullmatch(r"[a-z0-9-]+", experiment.id)
        assert all(len(text) > 10 for text in (experiment.title, experiment.source, experiment.abstract))


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("", "one of the arguments NAME --list --all is required"),
        ("figure-99", "NAME must be one of "),
        ("uldp-figure-10 --seed -1", "--seed must be a non-negative whole number, got -1"),
        ("uldp-figure-10 --runs 0", "--runs must be a whole number above 0, got '0'"),
        ("uldp-figure-10 --output taken", "taken: File exists"),
    ],
)
def test_says_in_one_line_what_is_wrong(
    argv: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    assert reproduce.main(argv.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"reproduce: {sentence}")
    assert captured.err.count("\n") == 1


def test_without_matplotlib_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert reproduce.main(["uldp-figure-10", "--output", str(tmp_path)]) == 2
    assert "the picture needs matplotlib, the extra 'plot'" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------- simulated clients

VALUES = ("a", "b", "c", "d")
PEOPLE = np.array([20_000, 15_000, 0, 5_000])
CLOSED = {"id": "closed", "values": list(VALUES), "sensitive": ["d", "c"]}
HASHED = {"id": "hashed", "num_buckets": 3}


def collection(alphabet: dict[str, Any], mechanism: str, cohorts: int = 1) -> Collection:
    spec = {"id": "frame", "version": 1, "alphabet": alphabet, "num_cohorts": cohorts}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": 1.0}})


CASES = {
    "urr": collection(CLOSED, "urr"),
    "rappor": collection(CLOSED, "rappor"),
    "urap": collection(CLOSED, "urap"),
    "hashed": collection(HASHED, "krr", cohorts=5),
}


@pytest.mark.parametrize("name", CASES)
def test_simulated_counts_are_those_of_the_simulated_reports(name: str) -> None:
    case = CASES[name]
    batch = frame.simulate_reports(case, VALUES, PEOPLE, np.random.default_rng(1))
    assert len(batch) == PEOPLE.sum()
    assert batch.seeded
    assert case.count(batch) == frame.simulate_counts(case, VALUES, PEOPLE, np.random.default_rng(1))


@pytest.mark.parametrize("name", CASES)
def test_simulated_counts_are_what_the_mechanism_expects(name: str) -> None:
    """Cells of each cohort against the exact response; the spread of fixed people is at most binomial."""
    case = CASES[name]
    counts = frame.simulate_counts(case, VALUES, PEOPLE, generator("frame counts", name))
    table = np.broadcast_to(case.alphabet.symbol_table(VALUES, case.num_cohorts), (case.num_cohorts, len(VALUES)))
    frequencies = np.zeros((case.num_cohorts, case.num_cells))
    np.add.at(frequencies, (np.arange(case.num_cohorts)[:, np.newaxis], table), PEOPLE / PEOPLE.sum())
    expected = case.mechanism.response(frequencies)
    number = counts.num_reports[:, np.newaxis]
    limits = normal_limit(expected.size) * np.sqrt(number * expected * (1 - expected)) + 1
    assert (np.abs(counts.cells - number * expected) <= limits).all()
    share = 1 / case.num_cohorts
    spread = np.sqrt(PEOPLE.sum() * share * (1 - share))
    assert (np.abs(counts.num_reports - PEOPLE.sum() * share) <= normal_limit(case.num_cohorts) * spread).all()


def test_people_are_drawn_whole() -> None:
    rng = generator("frame people")
    sample = frame.sample_people(PEOPLE, 30_000, rng)
    assert sample.sum() == 30_000
    assert (sample <= PEOPLE).all()
    assert (frame.sample_people(PEOPLE, 40_000, rng) == PEOPLE).all()
    assert frame.draw_people(frame.shares(PEOPLE), 77, rng).sum() == 77
    assert frame.draw_people(frame.shares(PEOPLE), 77, rng)[2] == 0


def test_losses() -> None:
    estimated, true = np.array([0.5, 0.7, -0.2]), np.array([0.25, 0.25, 0.5])
    assert frame.total_variation(estimated, true) == pytest.approx(0.7)
    assert frame.squared_error(estimated, true) == pytest.approx(0.0625 + 0.2025 + 0.49)
    assert frame.shares(np.array([1, 3])).tolist() == [0.25, 0.75]


# ------------------------------------------------------------------------------------------------------------ data


def test_every_table_has_its_checksum_in_the_readme() -> None:
    text = (DATA / "README.md").read_text("utf-8")
    sums = dict(re.findall(r"(\w+\.csv) \| ([0-9a-f]{64}) \|", text))
    tables = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in DATA.glob("*.csv")}
    assert tables == {name: sums[name] for name in tables}


def test_surnames() -> None:
    table = frame.read_table("surnames.csv")
    percent = np.array(table["percent"], dtype=float)
    assert len(set(table["name"])) == len(percent) == 4096
    assert (np.diff(percent) <= 0).all()
    assert table["name"][0] == "SMITH"
    assert percent.sum() == pytest.approx(60.8, abs=0.1)


class Rainbow(Dice):
    id = "rainbow"

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.subplots().imshow(np.arange(600.0).reshape(20, 30), cmap="viridis")


def test_heat_maps_keep_their_colours(tmp_path: Path) -> None:
    """All 256 of the colour map, each as the map defines it."""
    reproduce.draw(Rainbow(), frame.Result(rows=[], verdicts=[]), tmp_path / "rainbow.png")
    with Image.open(tmp_path / "rainbow.png") as picture:
        counted = picture.convert("RGB").getcolors(1 << 24)
    shown = {colour for _, colour in counted}
    assert {tuple(colormaps["viridis"](at, bytes=True)[:3]) for at in range(256)} <= shown


class Curves(Dice):
    """Three panels in a row, with two lines that differ in colours alone."""

    id = "curves"

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        for axes in figure.subplots(1, 3, sharey=True):
            axes.plot([1, 2], [1, 2], color="#d55e00", label="one")
            axes.plot([1, 2], [2, 1], color="#0072b2", label="two")
            axes.legend()


def test_a_picture_for_a_paper_has_one_column_without_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its panels stand below each other, each line has a pattern of its own, and its caption is a text."""
    seen: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *to, **more: (seen.append(self), save(self, *to, **more)))
    options = reproduce.configure(["--list", "--style", "paper"])
    assert options.style == "paper" and reproduce.configure(["--list"]).style is None
    asked = dataclasses.replace(options, experiments=(Curves(),), output=tmp_path, runs=2)
    with contextlib.redirect_stdout(io.StringIO()):
        assert reproduce.job(asked) == 0
    content = (tmp_path / "curves.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", content)
    assert box is not None and (float(box[1]), float(box[2])) == pytest.approx((237.6, 3 * 136.8))
    panels = [figure for figure in seen if figure.get_figwidth() < 4][-1].axes
    assert len({round(axes.get_position().x0, 2) for axes in panels}) == 1
    for axes in panels:
        looks = {(str(line.get_color()), str(line.get_linestyle())) for line in axes.get_lines()}
        assert looks == {("#000000", "-"), ("#606060", "--")}
        legend = axes.get_legend()
        assert legend is not None
        assert [line.get_linestyle() for line in legend.get_lines()] == ["-", "--"]
    said = (tmp_path / "curves.txt").read_text("utf-8").splitlines()
    assert said[0] == "Throws of a die (nobody, figure 0). People throw a die."
    assert said[1:] == ["Holds: Every throw counts.", "Does not hold: The die is fair."]
