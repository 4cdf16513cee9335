"""``uldp compare`` of a run with ``--borrow``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ldp.dimensions import GROUPED
from tests.support.spools import Spool
from uldp_transforms.jobs import uldp
from uldp_transforms_compare.compare.compare_command import BORROWED


def test_own_shares_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Differences of borrowed shares would be drawn towards 0; the program says which ones it compares."""
    monkeypatch.chdir(tmp_path)
    spool = Spool(tmp_path, "--by", "country", of=(GROUPED,))
    spool.add_file(reports=800, minutes=2)
    rows, said = [], []
    for name in ("own", "borrowed"):
        spool.run_batch()
        Path("batch").rename(name)
        spool.window.append("--borrow")
        assert uldp.main(["compare", name, "--by", "country", "--min_reports", "1"]) == 0
        rows.append(Path(name, "comparisons.jsonl").read_text("utf-8"))
        said.append(capsys.readouterr().err)
    assert rows[0] == rows[1] and rows[0]
    assert [f"compare: {BORROWED}" in err for err in said] == [False, True]
    assert uldp.main(["compare", "borrowed", "--with", "own", "--min_reports", "1"]) == 0
    assert BORROWED not in capsys.readouterr().err
