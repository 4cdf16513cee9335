"""Answers of real people, as packed messages through the main job, and as a table: published figures to 1e-4.

The figures are for answers of an online experiment of Hoeglinger and Jann (University of Bern social sciences working
papers 8 and 17), in ``tests/data``, and for Nigeria (Blair, Imai and Zhou 2015; the R package rr 1.4.2 prints .2619).
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from pathlib import Path

import fastavro
import numpy as np
import pytest

from uldp_transforms import schemas
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms_survey import survey
from uldp_transforms_survey.survey.share_rows import collection_of
from uldp_transforms_survey.survey_designs import SurveyDesign

DATA = Path(__file__).parent / "data"
DESIGNS = {"DQ": "direct", "Crosswise": "crosswise:{0}", "Forced": "forced:{0},{1}", "UQM": "unrelated:{0},{1}"}
NIGERIA = ("nigeria", "forced:2/3,1/2")

Answers = dict[tuple[str, str], list[int]]
Found = dict[tuple[str, str], tuple[float, float]]


def read() -> Answers:
    """Counts of answers 0 and 1 by question and design."""
    counts: Counter[tuple[str, str, int]] = Counter()
    with (DATA / "mturk_counts.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            design = DESIGNS[row["RRmodel"]].format(row["RRp1"], row["RRp2"])
            counts[row["Question"], design, int(row["answer"])] += int(row["people"])
    found = {key[:2]: [counts[(*key[:2], answer)] for answer in (0, 1)] for key in counts}
    return found | {NIGERIA: [1604, 831]}


def packed(collection: Collection, counts: list[int], first: int) -> dict:
    """The record of one packed message with an answer of each person; report ids count on from ``first``."""
    people = sum(counts)
    ids = np.zeros((people, 2), dtype=np.uint64)
    ids[:, 0] = np.arange(first, first + people)
    return wire.batch_record(
        ReportBatch(
            fingerprint=collection.fingerprint,
            cohorts=np.zeros(people, np.uint16),
            payloads=np.repeat([0, 1], counts).astype(np.uint8)[:, np.newaxis],
            event_times=np.zeros(people, np.int64),
            report_ids=ids.view(np.uint8),
        )
    )


@pytest.fixture(scope="module")
def estimated(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Raw frequency and standard error of yes, from rows of ``uldp estimate``."""
    folder, answers = tmp_path_factory.mktemp("answers"), read()
    records, arguments, names = [], [], {}
    for number, ((question, design), counts) in enumerate(answers.items()):
        collection = collection_of(SurveyDesign.parse(design), f"asked-{number}")
        names[collection.id] = (question, design)
        path = folder / f"{collection.id}.json"
        path.write_text(json.dumps(collection.to_json()), encoding="utf-8")
        arguments += ["--collection", str(path)]
        records.append(packed(collection, counts, number << 20))
    with (folder / "in.avro").open("wb") as file:
        fastavro.writer(file, schemas.load("report_batch.avsc"), records)
    assert estimate.main([*arguments, "--input", str(folder / "in.avro"), "--output", str(folder / "out")]) == 0
    rows = [json.loads(line) for path in folder.glob("out/estimates*.jsonl") for line in path.open(encoding="utf-8")]
    assert {row["collection_id"]: row["num_reports"] for row in rows} == {
        name: sum(answers[key]) for name, key in names.items()
    }
    found = {}
    for row in rows:
        [yes] = [entry for entry in row["estimates"] if entry["value"] == "yes"]
        found[names[row["collection_id"]]] = (yes["raw_frequency"], yes["standard_error"])
    return found


@pytest.mark.parametrize(
    ("question", "design", "rate", "error"),
    [
        ("shoplifting", "crosswise:0.1594625", 0.4736, 0.0215),
        ("shoplifting", "crosswise:0.1971293", 0.4547, 0.0243),
        ("tax evasion", "crosswise:0.1594625", 0.2025, 0.0199),
        (*NIGERIA, 0.2619, 0.0144),
    ],
)
def test_published_rates_of_single_designs(question, design, rate, error, estimated):
    assert estimated[question, design] == (pytest.approx(rate, abs=1e-4), pytest.approx(error, abs=1e-4))


def pooled(answers: Answers, estimated: Found, question: str, name: str) -> tuple[float, float]:
    """The most likely share of yes by all designs of a name, from their raw frequencies, and its standard error.

    Counts are binomial with probability base + slope p, so that the likelihood equation is
    sum_a w_a (u_a - p) = 0 with w_a = n_a slope_a^2 / (mu_a (1 - mu_a)) and mu_a = base_a + slope_a p.
    """
    keys = [key for key in estimated if key[0] == question and key[1].startswith(name)]
    raw, people = np.array([estimated[key][0] for key in keys]), np.array([sum(answers[key]) for key in keys])
    base, yes = np.array([[float(one) for one in SurveyDesign.parse(design).ones] for _, design in keys]).T
    share = min(max(float(raw.mean()), 1e-12), 1.0)
    for _ in range(200):
        mean = base + (yes - base) * share
        weights = people * (yes - base) ** 2 / (mean * (1 - mean))
        share = min(max(float(weights @ raw / weights.sum()), 0.0), 1.0)
    return share, 1 / math.sqrt(weights.sum())


PUBLISHED = {
    "cheating dice game": [(0.0312, 0.0063), (0.1471, 0.0144), (0, 0.0127), (0.0466, 0.0116)],
    "non voting": [(0.3446, 0.0172), (0.3804, 0.0160), (0.3251, 0.0168), (0.3493, 0.0160)],
    "shoplifting": [(0.4023, 0.0177), (0.4653, 0.0161), (0.4922, 0.0171), (0.5436, 0.0164)],
    "tax evasion": [(0.1003, 0.0108), (0.1962, 0.0148), (0.1430, 0.0152), (0.1746, 0.0142)],
}
"""By direct question, crosswise model, forced response and unrelated question."""


@pytest.mark.parametrize("question", PUBLISHED)
def test_every_design_of_every_question(question, estimated):
    answers = read()
    for name, (rate, error) in zip(("direct", "crosswise", "forced", "unrelated"), PUBLISHED[question]):
        assert pooled(answers, estimated, question, name) == (
            pytest.approx(rate, abs=1e-4),
            pytest.approx(error, abs=1e-4),
        ), name


def test_a_table_of_the_same_answers_has_the_same_estimates(estimated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("answers.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "design", "answer", "people"])
        for (question, design), counts in read().items():
            writer.writerows([question, design, answer, number] for answer, number in enumerate(counts))
    columns = "--question question --design design --people people"
    assert found_in("answers.csv", columns, "--json") == estimated
    found = found_in("answers.csv", columns, "--json_pooled")
    for question, (_, crosswise, _, unrelated) in PUBLISHED.items():
        for name, published in (("crosswise", crosswise), ("unrelated", unrelated)):
            assert found[question, name] == pytest.approx(published, abs=1e-4)


def test_ten_rates_of_one_question(tmp_path, monkeypatch):
    """The share of students who copied in an exam, as the literature has it by likelihood from 1,427 people."""
    path = DATA / "ethbe_crosswise_counts.csv"
    monkeypatch.chdir(tmp_path)
    columns = "--question question --design crosswise:rate --people people"
    found = found_in(str(path), columns, "--json_pooled")
    assert found["copied", "crosswise"] == (pytest.approx(0.2828, abs=5e-5), pytest.approx(0.0221, abs=5e-5))
    rows = [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]
    assert [(row["num_designs"], row["num_reports"]) for row in rows] == [(10, 1427)] * 5


def found_in(path: str, columns: str, option: str) -> Found:
    """Raw frequency and standard error of each question and design that ``uldp survey`` writes."""
    assert survey.main([path, *columns.split(), option, "rows"]) == 0
    rows = [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]
    return {(row["question"], row["design"]): (row["raw_frequency"], row["standard_error"]) for row in rows}
