"""``--liars``: what the page says of it, and comparisons that allow for it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support.html_tree import tree_of
from tests.support.jobs.reestimated import COLLECTIONS, FILES, estimated
from tests.support.messages_cases import write_files
from uldp_transforms.jobs import uldp

KRR = COLLECTIONS[0]
JOB = "--collection krr.json --window 5m --min_reports 20"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
