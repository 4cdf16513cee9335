"""Reports that were drawn from a seed: every row that any program makes of them says so, and so does what it prints."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow.parquet as pq
import pytest

from uldp_transforms.jobs import uldp

_DAY = 1_000_000_800  # 2001-09-09T02:00:00Z


def collection(**changes: Any) -> dict[str, Any]:
    country = {"name": "country", "values": ["de", "fr"]}
    return {
        "id": "pets",
        "version": 1,
        "alphabet": {"id": "closed", "values": ["ant", "bee", "cat"]},
        "mechanism": {"id": "krr", "epsilon": 3.0},
        "dimensions": [country],
    } | changes


COLLECTIONS = {
    "pets": collection(),
    "asked1": collection(id="asked-1", question="asked"),
    "asked2": collection(id="asked-2", question="asked", mechanism={"id": "ss", "epsilon": 3.0}),
    "sizes": collection(
        id="sizes",
        alphabet={"id": "ordered", "low": 0, "high": 3, "num_bins": 4},
        mechanism={"id": "sw", "epsilon": 3.0},
    ),
    "words": collection(
        id="words",
        alphabet={"id": "prefixes", "num_buckets": 16, "seed": 1, "tokens": ["a", "b"], "lengths": [1, None]},
        num_cohorts=96,
        dimensions=None,
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of 1,200 people a collection, drawn from a seed, and the output of a job over them."""
    place = tmp_path_factory.mktemp("simulated")
    rng = np.random.default_rng(1)
    texts = {"sizes": "0123", "words": ["ab", "ba", "aa"]}
    for name, spec in COLLECTIONS.items():
        (place / f"{name}.json").write_text(json.dumps(spec), encoding="utf-8")
        choices = texts.get(name, ["ant", "bee", "cat"])
        rows = [
            f"{choices[value % len(choices)]},{_DAY + 12 * number},{'de' if number % 3 else 'fr'}"
            for number, value in enumerate(rng.integers(0, 3, 1200).tolist())
        ]
        (place / f"{name}.csv").write_text("\n".join(["value,event_time,country", *rows]), encoding="utf-8")
        files = ["--values", f"{place}/{name}.csv", "--output", f"{place}/{name}.avro", "--form", "packed"]
        assert uldp.main(["simulate", f"{place}/{name}.json", *files, "--seed", "3"]) == 0
    assert uldp.main(["estimate", "--input", f"{place}/*.avro", *job(place, "out"), *ESTIMATED]) == 0
    grouped = [*job(place, "grouped", GROUPED), "--window", "1h", "--write_counts", "--by", "country"]
    assert uldp.main(["estimate", "--input", f"{place}/*.avro", *grouped]) == 0
    return place


GROUPED = ("pets", "asked1", "asked2", "sizes")
ESTIMATED = ["--window", "1h", "--write_counts", "--write_parquet", "--smooth", "--discover"]


def job(place: Path, output: str, names: tuple[str, ...] = tuple(COLLECTIONS)) -> list[str]:
    collections = [word for name in names for word in ("--collection", f"{place}/{name}.json")]
    (place / "candidates").write_text("ab\nba\n", encoding="utf-8")
    candidates = ["--candidates", f"{place}/candidates"] if "words" in names else []
    return [*collections, "--output", f"{place}/{output}", *candidates]


def rows_in(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file that has the field, whatever its form."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        elif path.suffix == ".avro":
            rows = [dict(row) for row in fastavro.reader(io.BytesIO(path.read_bytes()))]  # type: ignore[arg-type]  # records, of which fastavro knows no type
        elif path.suffix == ".parquet":
            rows = pq.read_table(path).to_pylist()
        else:
            continue
        if any("simulated" in row for row in rows):
            found[path.name] = rows
    return found


def check(directory: Path, *files: str) -> None:
    """All rows of these files, and of no others, say that they are simulated."""
    found = rows_in(directory)
    assert set(found) == set(files)
    for name, rows in found.items():
        assert {row["simulated"] for row in rows} == {True}, name


ALL = (
    *("counts.avro", "discovered.jsonl", "discovered.parquet", "estimates.avro", "estimates.jsonl"),
    *("estimates.parquet", "values.parquet"),
)


def test_rows_of_a_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(folder / "out", *ALL)
    check(folder / "grouped", "counts.avro", "estimates.avro", "estimates.jsonl")
    assert uldp.main(["check", str(folder / "out")]) == 0
    assert "simulated  " in capsys.readouterr().out


def test_totals_say_it_in_rows_and_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--totals" if word == "--output" else word for word in job(folder, "totals/rows.jsonl", GROUPED)]
    (folder / "totals").mkdir(exist_ok=True)
    assert uldp.main(["reestimate", f"{folder}/grouped", "--window", "all", *words, "--by", "country"]) == 0
    check(folder / "totals", "rows.jsonl")
    heads = [line for line in capsys.readouterr().out.splitlines() if ", status " in line]
    assert heads and all(line.endswith("; some or all reports are simulated") for line in heads)


@pytest.mark.parametrize("what", [["--by", "country"], ["--windows"]], ids=" ".join)
def test_comparisons_say_it_in_rows_and_in_words(
    folder: Path, what: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "compared").mkdir(exist_ok=True)
    words = job(folder, "compared/rows.jsonl", GROUPED)
    assert uldp.main(["compare", f"{folder}/grouped", *words, *what]) == 0
    check(folder / "compared", "rows.jsonl")
    assert capsys.readouterr().out.count("Some or all of these reports are simulated.") == 3


def test_one_simulated_side_is_enough(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other one is not: its clients drew from the system's source."""
    files = ["--values", f"{folder}/pets.csv", "--output", f"{tmp_path}/real.avro"]
    assert uldp.main(["simulate", f"{folder}/pets.json", *files]) == 0
    words = ["--collection", f"{folder}/pets.json", "--output", f"{tmp_path}/real", "--window", "1h", "--write_counts"]
    assert uldp.main(["estimate", "--input", f"{tmp_path}/real.avro", *words]) == 0
    assert {row["simulated"] for rows in rows_in(tmp_path / "real").values() for row in rows} == {False}
    words = ["--collection", f"{folder}/pets.json", "--output", f"{tmp_path}/rows.jsonl"]
    for sides in ((f"{tmp_path}/real", f"{folder}/out"), (f"{folder}/out", f"{tmp_path}/real")):
        capsys.readouterr()
        assert uldp.main(["compare", sides[0], "--with", sides[1], *words]) == 0
        assert capsys.readouterr().out.count("Some or all of these reports are simulated.") == 1
        assert {row["simulated"] for row in rows_in(tmp_path)["rows.jsonl"]} == {True}


def test_the_page_says_it(folder: Path, tmp_path: Path) -> None:
    assert uldp.main(["report", f"{folder}/out", "--output", f"{tmp_path}/page.html"]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("This is a simulation: ") == len(COLLECTIONS) + 1, "the question is a part of its own"
