"""The page about versions of a question, performed as it stands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from uldp_transforms.jobs import uldp

PAGE = (Path(__file__).parents[3] / "docs" / "roll-out.md").read_text(encoding="utf-8")


def test_the_commands_give_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, form in enumerate(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL), 1):
        Path(f"sleep-{number}.json").write_text(form, encoding="utf-8")
    for name, people in (("old", 2000), ("new", 1000)):
        rows = [f"2026-03-01T12:00:00Z,{('well', 'well', 'so-so', 'badly')[place % 4]}" for place in range(people)]
        Path(f"{name}.csv").write_text("\n".join(["event_time,value", *rows]), encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in commands.splitlines():
        assert uldp.main(shlex.split(command)[1:]) == 0
    rows = [json.loads(line) for line in Path("out/estimates.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 3
    for row in rows:
        well = row["estimates"][0]
        cells = [row["collection_id"], row["collection_version"], json.dumps(row["pooled"]), row["num_reports"]]
        cells += [f"{well[name]:.4f}" for name in ("raw_frequency", "standard_error")]
        assert f"| {' | '.join(map(str, cells))} |" in PAGE
