"""Without the extra ``gcp``: files work, and what needs Google's clients says so in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.messages_cases import KRR, container, single, write_files

OVER_FILES = "estimate --collection krr.json --input in.avro --output out"

PROGRAM = """
import contextlib, io, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "google" or (name.startswith("google.") and not name.startswith("google.protobuf")):
            if name != "google":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from uldp_transforms.jobs.uldp import main
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
"""``uldp`` on a Python that has no package of Google but that of Protocol Buffers, which Beam needs: what it says."""

NEEDS = {
    "estimate --collection krr.json --window 1h --output out --subscription projects/p/subscriptions/s": "--sub",
    f"{OVER_FILES} --output_topic projects/p/topics/t": "--output_topic",
    f"{OVER_FILES} --bigquery project:data": "--bigquery",
    "simulate krr.json --values v.csv --topic projects/p/topics/t": "--topic",
    "live": "live",
}


def test_files_need_none_and_what_needs_them_says_so(tmp_path: Path) -> None:
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, single())]), "v.csv": "value\n0\n"})
    command = [sys.executable, "-c", PROGRAM, *NEEDS, f"{OVER_FILES} --min_reports 1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    *refused, over_files = json.loads(done.stdout)
    assert over_files == [0, "estimate: 1 received = 1 accepted + 0 rejected\n"]
    (row,) = map(json.loads, (tmp_path / "out" / "estimates.jsonl").read_text("utf-8").splitlines())
    assert row["num_reports"] == 1
    for (arguments, what), (code, said) in zip(NEEDS.items(), refused, strict=True):
        assert code == 2, arguments
        [sentence] = said.splitlines()
        name, _, rest = sentence.partition(": ")
        assert (name, rest[: len(what)]) == (arguments.split(maxsplit=1)[0], what)
        assert rest.endswith(" needs Google's client libraries; install the extra 'gcp': pip install '.[gcp]'")
