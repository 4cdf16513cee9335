"""docs/numbers.md: its programs run as they stand and print what it says; its table is the one of the benchmark."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from labs.benchmarks import numbers
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")


def block(language: str, place: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)[place]


def test_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labs").symlink_to(ROOT / "labs")
    (tmp_path / "delays.json").write_text(block("json"), encoding="utf-8")
    for command in block("sh").replace("\\\n", "").strip().splitlines():
        assert uldp.main(shlex.split(command)[1:]) == 0
    capsys.readouterr()
    exec(block("python"), {})
    printed = PAGE.partition("prints\n\n```\n")[2].partition("```")[0]
    assert capsys.readouterr().out == printed


def test_the_sum_of_visits_is_that_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (part,) = re.findall(r"\n## Sums and bounded counts\n(.*?)\n## ", PAGE, flags=re.DOTALL)
    blocks = re.findall(r"```(\w*)\n(.*?)```", part, flags=re.DOTALL)
    texts = {language: [text for name, text in blocks if name == language] for language, _ in blocks}
    (tmp_path / "visits.json").write_text(texts["json"][0], encoding="utf-8")
    exec(texts["python"][0], {})
    assert capsys.readouterr().out == texts[""][0]
    for command in texts["sh"][0].replace("\\\n", "").strip().splitlines():
        capsys.readouterr()
        assert uldp.main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == texts[""][1]


def test_the_table_is_that_of_the_benchmark():
    for row in numbers.rows():
        assert f"| {' | '.join(row)} |" in PAGE


def test_the_collection_of_the_page_is_whole():
    item = Collection.from_json(json.loads(block("json")))
    assert item.mechanism.num_outputs == 48
