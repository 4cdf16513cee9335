"""Windows of minutes that begin at midnight, in all programs that name them: each with its time, none by its day."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.html_tree import tree_of
from tests.support.messages_cases import container, write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

MINUTE, WINDOWS, EACH = 60_000, 3, 2_000
MIDNIGHT = "1 Jan 1970, 00:00"
A_DAY = re.compile("Thu 1 Jan 1970")
ANSWERS = Collection.from_json(
    {"id": "answers", "version": 1, "alphabet": {"id": "closed", "values": ["no", "yes"]}}
    | {"mechanism": {"id": "krr", "epsilon": 2.0}}
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a job over three minutes after midnight; the share of yes falls from 1 to 0 after the first."""
    folder, rng = tmp_path_factory.mktemp("minutes"), generator("windows of minutes after midnight")
    messages = [
        (1, wire.encode_batch(ANSWERS.perturb([value] * EACH, rng, [minute * MINUTE] * EACH)))
        for minute, value in enumerate(["yes", "no", "no"])
    ]
    write_files(folder, {"answers.json": ANSWERS, "in.avro": container(messages, wire.BATCH_SCHEMA)})
    options = f"--collection {folder}/answers.json --input {folder}/in.avro --output {folder}/job"
    assert uldp.main(shlex.split(f"estimate {options} --window 1m --min_reports 1 --write_counts --smooth")) == 0
    return folder / "job"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("compare {} --windows", "1 Jan 1970, 00:01  1 Jan 1970, 00:00"),
        ("compare {} --windows --min_reports 999999", "answers: 1 Jan 1970, 00:00 is left out"),
        ("reestimate {} --window all", f"{MIDNIGHT} to 00:03 (UTC)"),
    ],
)
def test_programs_name_all_windows_with_times(
    words: str, named: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert uldp.main(shlex.split(words.format(job))) == 0
    printed = "".join(capsys.readouterr())
    assert named in printed and not A_DAY.search(printed)


def test_the_page_names_all_windows_with_times(job: Path, tmp_path: Path) -> None:
    """Those of the job, and those of a comparison, which its rows name by their starts."""
    assert uldp.main(["compare", str(job), "--windows"]) == 0
    assert uldp.main(["report", str(job), "--output", str(tmp_path / "page.html")]) == 0
    text = tree_of((tmp_path / "page.html").read_text("utf-8")).text
    assert f"{MIDNIGHT} to 00:01" in text and not A_DAY.search(text)
