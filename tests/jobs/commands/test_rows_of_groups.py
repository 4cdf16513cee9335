"""Display intervals of groups in the rows of every program that writes them: from files, and stored counts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.display_of_groups import assert_counts_all_groups, rows_of
from tests.support.ldp.dimensions import GROUPED
from tests.support.spools import Spool
from uldp_transforms.jobs import uldp


def test_display_intervals_of_groups_count_the_values_of_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, "--by", "country", of=(GROUPED,))
    spool.add_file(reports=800, minutes=2)
    spool.run_batch()
    assert_counts_all_groups(rows_of(spool.batch / "estimates.jsonl"))
    monkeypatch.chdir(tmp_path)
    again = "reestimate --collection grouped.json batch --output again --by country --min_reports 1"
    assert uldp.main(shlex.split(again)) == 0
    assert_counts_all_groups(rows_of(Path("again/estimates.jsonl")))
    assert uldp.main(shlex.split("total batch --by country --min_reports 1 --output total.jsonl")) == 0
    assert_counts_all_groups(rows_of(Path("total.jsonl")))
