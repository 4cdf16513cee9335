"""Without the extra ``gcp``: files work, and what needs Google's clients says so in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.messages_cases import KRR, container, single, write_files

OVER_FILES = "estimate --collection krr.json --input in.avro --output out"

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "google" or (name.startswith("google.") and not name.startswith("google.protobuf")):
            if name != "google":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from uldp_transforms.jobs.uldp import main
sys.exit(main(sys.argv[1:]))
"""


def uldp(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``uldp`` on a Python that has no package of Google but that of Protocol Buffers, which Beam needs."""
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, single())]), "v.csv": "value\n0\n"})
    return tmp_path


def test_files_need_none(folder: Path) -> None:
    done = uldp(
        folder, *["estimate", "--collection", "krr.json", "--input", "in.avro", "--output", "out", "--min_reports", "1"]
    )
    assert (done.returncode, done.stderr) == (0, "estimate: 1 received = 1 accepted + 0 rejected\n")
    (row,) = map(json.loads, (folder / "out" / "estimates.jsonl").read_text("utf-8").splitlines())
    assert row["num_reports"] == 1


NEEDS = {
    "estimate --collection krr.json --window 1h --output out --subscription projects/p/subscriptions/s": "--sub",
    f"{OVER_FILES} --output_topic projects/p/topics/t": "--output_topic",
    f"{OVER_FILES} --bigquery project:data": "--bigquery",
    "simulate krr.json --values v.csv --topic projects/p/topics/t": "--topic",
    "live": "live",
}

ONE_BY_ONE = """
import contextlib, io, json
said = []
for line in sys.argv[1:]:
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            code = main(line.split())
        except SystemExit as end:
            code = end.code
    said.append((code, errors.getvalue()))
print(json.dumps(said))
"""


def test_what_needs_them_says_so(folder: Path) -> None:
    program = WITHOUT.replace("sys.exit(main(sys.argv[1:]))\n", ONE_BY_ONE)
    command = [sys.executable, "-c", program, *NEEDS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    for (arguments, what), (code, said) in zip(NEEDS.items(), json.loads(done.stdout), strict=True):
        assert code == 2, arguments
        [sentence] = said.splitlines()
        name, _, rest = sentence.partition(": ")
        assert (name, rest[: len(what)]) == (arguments.split(maxsplit=1)[0], what)
        assert rest.endswith(" needs Google's client libraries; install the extra 'gcp': pip install '.[gcp]'")
