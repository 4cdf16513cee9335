"""``--liars`` in estimate, reestimate and total, and what the page says of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.html_tree import tree_of
from tests.support.jobs.reestimated import COLLECTIONS, FILES, again, estimated, rows_of
from tests.support.messages_cases import write_files
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.utility import honest_bounds

KRR = COLLECTIONS[0]
JOB = "--collection krr.json --window 5m --min_reports 20"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries_of(row: dict[str, Any], name: str) -> np.ndarray:
    return np.array([entry[name] for entry in row["estimates"]])


def assert_widened(plain: dict[str, Any], lied: dict[str, Any], liars: float) -> None:
    """Both kinds of intervals are the bounds of those of all reports, as far as the latter are inside (0, 1)."""
    assert (plain["liars"], lied["liars"]) == (None, liars)
    assert entries_of(plain, "frequency").tolist() == entries_of(lied, "frequency").tolist()
    values = tuple(entry["value"] for entry in plain["estimates"])
    for kind in ("ci", "display"):
        low, high = (entries_of(plain, f"{kind}_{end}") for end in ("low", "high"))
        bounds = np.clip(honest_bounds(KRR, values, low, high, liars), 0, 1)
        assert ((low > 0) & (high < 1)).any()
        for end, number, bound in zip(("low", "high"), (low, high), bounds):
            inside = (number > 0) & (number < 1)
            np.testing.assert_allclose(entries_of(lied, f"{kind}_{end}")[inside], bound[inside], atol=1e-9)


def test_windows_and_the_whole_period_allow_for_the_declared_share(folder: Path) -> None:
    """In the job, in the re-estimation of its counts, and in their total."""
    assert isinstance(KRR, Collection)
    plain = rows_of(estimated(JOB, [KRR]))
    lied = rows_of(again("--collection krr.json job --min_reports 20 --liars 0.02"))
    assert len(plain) == len(lied) == 2
    for one, other in zip(plain, lied):
        assert_widened(one, other, 0.02)
    assert uldp.main(shlex.split("total job --output plain.jsonl")) == 0
    assert uldp.main(shlex.split("total job --output lied.jsonl --liars 0.05")) == 0
    one, other = (json.loads(Path(f"{name}.jsonl").read_text("utf-8")) for name in ("plain", "lied"))
    assert_widened(one, other, 0.05)
    (folder / "job").rename(folder / "honest")
    same = rows_of(estimated(f"{JOB} --liars 0.02", [KRR]))
    assert [row["estimates"] for row in same] == [row["estimates"] for row in lied]


def facts_on(page: Path) -> dict[str, str]:
    tree = tree_of(page.read_text("utf-8"))
    return {name.text: text.text for name, text in zip(tree.all("dt"), tree.all("dd"))}


@pytest.mark.parametrize("liars", [None, 0.02])
def test_the_page_states_the_share_and_compares_no_windows(liars: float | None) -> None:
    """The whole period, too, allows for the share of the run."""
    estimated(f"{JOB} {'' if liars is None else f'--liars {liars}'}", [KRR])
    assert uldp.main(["report", "job", "--output", "page.html"]) == 0
    facts, text = facts_on(Path("page.html")), Path("page.html").read_text("utf-8")
    assert ('"joint"' in text) == (liars is None)
    assert (facts.get("Lies among the reports of a window") is None) == (liars is None)
    if liars is not None:
        assert facts["Lies among the reports of a window"] == (
            "at most 2 %, as the operator declares; intervals are of shares among honest people, and windows are not "
            "compared, because liars may be others in each"
        )
        assert facts["Lies among all reports"].startswith("at most 2 %, as the operator declares; intervals are of")


def test_a_total_with_liars_is_told_apart_from_windows_without() -> None:
    estimated(JOB, [KRR])
    assert uldp.main(shlex.split("total job --liars 0.05")) == 0
    assert uldp.main(["report", "job", "--output", "page.html"]) == 0
    facts = facts_on(Path("page.html"))
    assert facts["Lies among all reports"].startswith("at most 5 %")
    assert "Lies among the reports of a window" not in facts


def test_comparisons_allow_for_the_share_that_the_run_declared(capsys: pytest.CaptureFixture[str]) -> None:
    """Unless another one is given; what cannot be bounded is refused as in a job."""
    estimated(f"{JOB} --liars 0.02", [KRR])
    for options, share in (("", 0.02), ("--liars 0.05", 0.05)):
        assert uldp.main(shlex.split(f"compare job --windows {options} --min_reports 20")) == 0
        rows = [json.loads(line) for line in Path("job/comparisons.jsonl").read_text("utf-8").splitlines()]
        assert {row["liars"] for row in rows} == {share}
    capsys.readouterr()
    assert uldp.main(shlex.split("compare job --windows --liars 1")) == 2
    assert "liars must have a share in [0, 1), got 1.0" in capsys.readouterr().err
