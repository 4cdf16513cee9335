"""Whatever one program can do with a sample, every program can: each cell of the table is found by a run."""

from __future__ import annotations

import functools
import itertools
import json

import pytest

from tests.support.capabilities.capabilities import CAPABILITIES, Capability
from tests.support.capabilities.jobs import ESTIMATE, FOLLOW, PROGRAMS, REESTIMATE, STREAM, YAML, Job, job
from tests.support.capabilities.page import RECORD, YES
from tests.support.capabilities.programs import RUNS, rows_of
from tests.support.capabilities.reasons import REASONS, SILENT, words_of
from tests.support.cases import GOLDEN, golden
from tests.support.together import together

CELLS = list(itertools.product(PROGRAMS, CAPABILITIES))


def found_by_a_run(program: str, capability: Capability) -> str:
    """Empty if the rows of a program show a capability; otherwise the sentence that says that they do not."""
    rows = rows_of(program, capability.instead.get(program, capability.asked))
    if isinstance(rows, str):
        return rows
    beside = {} if capability.beside is None else rows_of(program, capability.beside)
    assert not isinstance(beside, str), f"{program} must run the job without the capability, but says: {beside}"
    return "" if capability.shows(rows, beside) else f"{program}: {capability.title}: {SILENT}"


def cell(program: str, capability: Capability) -> str:
    """What the table says."""
    sentence = found_by_a_run(program, capability)
    words = words_of(sentence) if sentence else YES
    assert words is not None, f"a new reason, for tests/support/capabilities/reasons.py: {sentence}"
    return words


def all_cells() -> list[dict[str, str]]:
    return [{"capability": one.title} | {program: cell(program, one) for program in PROGRAMS} for one in CAPABILITIES]


@functools.cache
def recorded() -> dict[str, dict[str, str]]:
    return {one["capability"]: one for one in json.loads((GOLDEN / RECORD).read_text(encoding="utf-8"))}


def test_the_record_has_every_cell() -> None:
    record = golden(RECORD, all_cells)
    assert [list(one) for one in record] == [["capability", *PROGRAMS]] * len(CAPABILITIES)
    assert [one["capability"] for one in record] == [one.title for one in CAPABILITIES]
    assert set(RUNS) == set(PROGRAMS)


@together(("program", "capability"), CELLS, ids=lambda case: f"{case[0]}: {case[1].title}", by=lambda case: case[0])
def test_every_cell_is_what_a_run_finds(program: str, capability: Capability) -> None:
    """Yes: the rows show it. No: the program says a sentence that stands for the words of the table."""
    assert cell(program, capability) == recorded()[capability.title][program]


def test_every_reason_but_those_that_wait_explains_a_cell() -> None:
    cells = {text for one in recorded().values() for text in one.values()} - set(recorded())
    assert {reason.words for reason in REASONS} <= cells
    assert cells <= {YES} | {reason.words for reason in REASONS}
    assert len({(reason.sentence) for reason in REASONS}) == len(REASONS)


SHARED = (
    *(job(study, by=("arm",)) for study in ("foods", "diet")),
    *(job(study, borrow=True, by=("arm",)) for study in ("foods", "diet")),
    job("diet", liars=0.02),
    job("minutes", limits=(45,), quantiles=(0.25,), by=("arm",)),
)


@pytest.mark.parametrize("asked", SHARED, ids=lambda asked: f"{asked.study} {' '.join(asked.values)}")
def test_all_programs_find_the_same_shares(asked: Job) -> None:
    """Of the same reports of the same windows, for everybody and for groups, raw and as they are shown; and figures."""
    numbers = {}
    for program in (ESTIMATE, STREAM, YAML, FOLLOW, REESTIMATE):
        rows = rows_of(program, asked)
        assert not isinstance(rows, str)
        numbers[program] = found = {}
        for row in rows["estimates"]:
            place = row["collection_version"], row["window_start"], row["group"]
            for name in ("frequency", "raw_frequency"):
                found |= {(*place, name, entry["value"]): entry[name] for entry in row["estimates"]}
            found[(*place, "borrowed")] = row["borrowed"] or 0
            if asked.study == "minutes":
                found[(*place, "mean")] = row["numbers"]["mean"]["value"]
    assert len(numbers[ESTIMATE]) > 10
    for program, found in numbers.items():
        assert found == pytest.approx(numbers[ESTIMATE], rel=1e-12, abs=1e-12), program


def test_a_capability_that_rows_do_not_show_is_seen() -> None:
    """Each check fails for the rows of a stream whose job is not asked for the capability."""
    failed = []
    for one in CAPABILITIES:
        without = one.beside or job(one.asked.study)
        rows = rows_of(STREAM, without)
        if without != one.asked and not isinstance(rows, str):
            assert not one.shows(rows, rows), one.title
            failed.append(one.title)
    assert len(failed) == len(CAPABILITIES) - 8, "three need candidates or a search, and five are in all rows"
