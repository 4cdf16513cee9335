"""Groups of a question that borrow, and a share of liars for questions: in every program that makes rows."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from apache_beam.yaml.yaml_transform import YamlTransform

from tests.jobs.follow.spools import Followed
from tests.support.beam.yaml_steps import PROVIDERS, steps
from tests.support.messages_cases import KRR, UP, write_files
from tests.support.named_outputs import collected
from tests.support.rows.borrowed_rows import assert_borrows
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.ldp.versions.borrowed_versions import borrow_versions

ARMS = [{"name": "arm", "values": ["a", "b"]}]
VERSIONS = tuple(
    dataclasses.replace(Collection.from_json(each.to_json() | {"dimensions": ARMS}), question="asked")
    for each in (KRR, UP)
)
(QUESTION,) = questions_of(VERSIONS)


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Followed:
    """A spool with reports of both versions in two windows."""
    found = Followed(tmp_path, "--by", "arm", of=VERSIONS)
    found.add_file(reports=900, minutes=2)
    monkeypatch.chdir(tmp_path)
    return found


def pooled(path: Path) -> dict[Any, dict[str, Any]]:
    """The last pooled row of each window and group."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    chosen = sorted((row for row in rows if row["pooled"]), key=lambda row: row["pane_index"])
    return {(row["window_start"], row["group"]): row for row in chosen}


def estimates(rows: dict[Any, dict[str, Any]]) -> list[Any]:
    return [(key, row["borrowed"], row["liars"], row["estimates"]) for key, row in sorted(rows.items())]


def shares(rows: dict[Any, dict[str, Any]]) -> list[Any]:
    """The same without intervals, which are for all looks where reports still arrive."""
    return [(*row[:-1], [entry["frequency"] for entry in row[-1]]) for row in estimates(rows)]


def of_spool(followed: Followed, name: str, *options: str) -> dict[Any, dict[str, Any]]:
    """The pooled rows of a job that follows the spool, whose directory gets this name."""
    followed.window += options
    followed.steps(2)
    rows = pooled(next(followed.output.glob("estimates-*.jsonl")))
    followed.output.rename(followed.output.parent / name)
    followed.window = followed.window[: len(followed.window) - len(options)]
    return rows


def of_files(followed: Followed, *options: str) -> dict[Any, dict[str, Any]]:
    followed.window += options
    followed.run_batch()
    followed.window = followed.window[: len(followed.window) - len(options)]
    rows = pooled(followed.batch / "estimates.jsonl")
    followed.batch.rename(followed.batch.parent / "files")
    return rows


def of_counts(followed: Followed, command: str) -> dict[Any, dict[str, Any]]:
    """The pooled rows of a command over stored counts."""
    assert uldp.main(shlex.split(f"{command} --by arm --min_reports 1 {' '.join(followed.collections)}")) == 0
    output = Path(shlex.split(command)[shlex.split(command).index("--output") + 1])
    return pooled(output / "estimates.jsonl" if output.is_dir() else output)


@pytest.mark.parametrize("options", [("--borrow",), ("--borrow", "--liars", "0.02")], ids=" ".join)
def test_rows_are_the_same_in_all_programs(followed: Followed, options: tuple[str, ...]) -> None:
    """From files on an engine, from a spool without one, and from stored counts."""
    plain = of_spool(followed, "plain")
    shown = of_spool(followed, "shown", *options)
    assert len(shown) == 2 * 4, "two windows; the total and three groups"
    of_engine, text = of_files(followed, *options), " ".join(options)
    assert shares(of_engine) == shares(shown)
    again = of_counts(followed, f"reestimate plain --output again {text}")
    assert estimates(again) == estimates(of_engine)
    own = of_counts(followed, "total plain --output own.jsonl")
    whole = of_counts(followed, f"total plain --output whole.jsonl {text}")
    assert len(own) == len(whole) == 4
    for one, other in ((plain, shown), (own, whole)):
        if "--liars" not in options:
            assert_borrows(one, other)
        else:
            assert_widened(one, other)
    assert {row["liars"] for row in shown.values()} == {0.02 if "--liars" in options else None}
    borrowing = {key for key, row in shown.items() if row["borrowed"] is not None}
    assert borrowing == {key for key in shown if key[1] and "--borrow" in options}


def assert_widened(plain: dict[Any, dict[str, Any]], lied: dict[Any, dict[str, Any]]) -> None:
    """Intervals contain those without liars, and are longer."""
    for key, row in lied.items():
        for before, entry in zip(plain[key]["estimates"], row["estimates"], strict=True):
            assert (entry["value"], entry["raw_frequency"]) == (before["value"], before["raw_frequency"])
            for low, high in (("ci_low", "ci_high"), ("display_low", "display_high")):
                assert entry[low] <= before[low] + 1e-12 and entry[high] >= before[high] - 1e-12
            assert entry["ci_high"] - entry["ci_low"] > before["ci_high"] - before["ci_low"]


def test_rows_are_those_of_the_library(followed: Followed) -> None:
    """The shares that groups show, and their bounds, from the stored counts."""
    rows = of_files(followed, "--borrow", "--liars", "0.02")
    stored: dict[Any, dict[bytes, Any]] = {}
    with Path("files", "counts.avro").open("rb") as file:
        for row in fastavro.reader(file):
            start = f"{row['window_start']:%Y-%m-%dT%H:%M:%SZ}"
            counts = CohortCounts(np.array(row["num_reports"]), np.reshape(row["cells"], (len(row["num_reports"]), -1)))
            stored.setdefault((start, row["group"]), {})[bytes.fromhex(row["fingerprint"])] = counts
    decoder: Any = ESTIMATORS["eb"]()
    for start in sorted({start for start, _ in rows}):
        groups = sorted(group for at, group in rows if at == start and group)
        shown = borrow_versions(QUESTION.pooled, stored[start, ""], [stored[start, group] for group in groups], decoder)
        for group, each in zip(groups, shown, strict=True):
            window = QUESTION.estimate(stored[start, group], decoder)
            expected = window.estimate.with_borrowed(each.frequencies, each.weight).with_lies(window.lies(0.02))
            row = rows[start, group]
            assert row["borrowed"] == each.weight
            assert [one["frequency"] for one in row["estimates"]] == each.frequencies.tolist()
            assert [one["ci_low"] for one in row["estimates"]] == expected.ci_low.tolist()
            assert [one["ci_high"] for one in row["estimates"]] == expected.ci_high.tolist()


def test_beam_yaml_has_the_rows_of_files(followed: Followed) -> None:
    options = {"by": ["arm"], "window": "1m", "min_reports": 1, "borrow": True, "liars": 0.02}
    text = steps(
        files=str(followed.spool / "*.avro"), collections=[json.dumps(one.to_json()) for one in VERSIONS], **options
    )
    rows = collected(lambda pipeline: pipeline | YamlTransform(text, providers=PROVIDERS))["estimates"]
    found = {(row["window_start"], row["group"]): row for row in rows if row["pooled"]}
    assert shares(found) == shares(of_files(followed, "--borrow", "--liars", "0.02"))
    assert len(found) == 8 and {row["liars"] for row in found.values()} == {0.02}


def test_questions_are_compared_in_spite_of_liars(followed: Followed) -> None:
    """The share is that of the run, or another one; differences are wider by what liars of both groups can do."""
    of_files(followed, "--liars", "0.02")
    found = {}
    for name, options in (("run", ""), ("more", "--liars 0.05"), ("none", "--liars 0")):
        assert uldp.main(shlex.split(f"compare files --by arm {options} --output {name}.jsonl")) == 0
        rows = [json.loads(line) for line in Path(f"{name}.jsonl").read_text("utf-8").splitlines()]
        assert {row["collection_id"] for row in rows} == {"asked"}
        found[name] = rows
    assert {row["liars"] for row in found["run"]} == {0.02}
    lengths = {name: np.array([row["high"] - row["low"] for row in rows]) for name, rows in found.items()}
    assert (lengths["none"] < lengths["run"]).all() and (lengths["run"] < lengths["more"]).all()


def test_a_version_that_cannot_borrow_is_refused_though_it_has_no_groups(tmp_path: Path, capsys: Any) -> None:
    """Its reports are among all, towards which groups would be drawn; liars are refused for its own sake."""
    values = {"id": "permuted", "values": ["0", "1", "2"], "num_buckets": 2}
    other = Collection.from_json(
        KRR.to_json() | {"id": "other", "question": "asked", "alphabet": values, "num_cohorts": 4}
    )
    write_files(tmp_path, {"one.json": VERSIONS[0], "other.json": other, "x.avro": b""})
    argv = f"estimate --collection {tmp_path}/one.json --collection {tmp_path}/other.json "
    need = "needs a list of all values, each with a symbol of its own, got collection 'other'"
    for options, sentence in (("--by arm --borrow", f"--borrow {need} and 'eb'"), ("--liars 0.1", f"--liars {need}")):
        assert (
            uldp.main(shlex.split(f"{argv} --input {tmp_path}/x.avro --output {tmp_path}/out --window 1h {options}"))
            == 2
        )
        assert sentence in capsys.readouterr().err
