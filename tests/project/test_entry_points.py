"""Another distribution registers a mechanism, an alphabet, an estimator, a source and a sink by entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.documents import ROOT
from tests.support import forked
from tests.support.messages_cases import KRR, container, single, write_files

CLASSES = """
import dataclasses
import numpy as np
from uldp_transforms.ldp.alphabets import Closed
from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.mechanisms import KaryRR

class TinyRR(KaryRR):
    id = "tiny-rr"

class TinyList(Closed):
    id = "tiny-list"

@dataclasses.dataclass(frozen=True, kw_only=True)
class TinyCut(PostProcessed):
    id = "tiny-cut"

    def post_process(self, raw):
        return np.clip(raw, 0, 1)
"""

JOBS = """
from uldp_transforms.jobs.sinks import Sink
from uldp_transforms.jobs.sources.avro_files import AvroFiles

class TinySource(AvroFiles):
    option = "--tiny_input"
    help = "files of a tiny package"
    own_options = {}

class TinySink(Sink):
    options = {"--tiny_output": {"help": "where a tiny package writes"}}

    @classmethod
    def of(cls, args, source, options):
        return None

    def write(self, outputs):
        pass
"""

ENTRY_POINTS = """
[uldp_transforms.mechanisms]
tiny-rr = tiny_classes:TinyRR
[uldp_transforms.alphabets]
tiny-list = tiny_classes:TinyList
[uldp_transforms.estimators]
tiny-cut = tiny_classes:TinyCut
[uldp_transforms.sources]
tiny = tiny_jobs:TinySource
[uldp_transforms.sinks]
tiny = tiny_jobs:TinySink
"""


def distribution(folder: Path, name: str, entry_points: str, **modules: str) -> None:
    """Modules and the metadata of an installed package, as an installer writes them."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code, encoding="utf-8")


def run(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program where the distributions of a folder are installed."""
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def run_forked(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same, where Beam has been imported, but no distribution looked for."""
    return forked.run(program, arguments, folder=folder, path=str(folder))


@pytest.fixture()
def installed(tmp_path: Path) -> Path:
    distribution(tmp_path, "tiny", ENTRY_POINTS, tiny_classes=CLASSES, tiny_jobs=JOBS)
    return tmp_path


COUNTED = """
import json, sys
from uldp_transforms.ldp import Collection
assert "tiny_classes" not in sys.modules
spec = {"id": "t", "version": 1, "alphabet": {"id": "tiny-list", "values": ["a", "b"]}}
of = Collection.from_json(spec | {"mechanism": {"id": "tiny-rr", "epsilon": 8}})
assert "tiny_jobs" not in sys.modules
estimate = of.estimate(of.count(of.perturb(["a"] * 600 + ["b"] * 200)), "tiny-cut")
print(json.dumps([of.to_json(), type(of.mechanism).__name__, estimate.frequencies.tolist(), estimate.estimator]))
"""


def test_they_are_used_by_their_ids(installed: Path) -> None:
    """With epsilon 8 one report in 2,982 lies: that 20 of 800 do has a chance below 1e-18."""
    done = run(installed, COUNTED)
    assert done.stderr == ""
    spec, mechanism, frequencies, estimator = json.loads(done.stdout)
    assert (spec["alphabet"]["id"], spec["mechanism"]["id"]) == ("tiny-list", "tiny-rr")
    assert (mechanism, estimator) == ("TinyRR", "tiny-cut")
    assert frequencies == pytest.approx([0.75, 0.25], abs=0.026)


LISTED = """
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS
print(*[list(table)[-1] for table in (MECHANISMS, ALPHABETS, ESTIMATORS)])
"""


def test_the_tables_list_them_last(installed: Path) -> None:
    assert run(installed, LISTED).stdout.split() == ["tiny-rr", "tiny-list", "tiny-cut"]


def test_the_command_line_has_their_options(installed: Path) -> None:
    program = "from uldp_transforms.jobs import estimate; estimate.main(['--help', 'all'])"
    done = run(installed, program)
    assert done.stderr == ""
    said = " ".join(done.stdout.split()).replace("- ", "-")  # lines also end at hyphens
    for words in (
        "--tiny_input",
        "files of a tiny package",
        "--tiny_output",
        "where a tiny package writes",
        "tiny-cut",
    ):
        assert words in said


TAKEN = [
    (
        "[uldp_transforms.mechanisms]\nkrr = tiny_classes:Taken",
        "from uldp_transforms.ldp.mechanisms import KaryRR\nclass Taken(KaryRR):\n    pass\n",
        "from uldp_transforms.ldp.mechanisms import MECHANISMS; list(MECHANISMS)",
        "mechanism 'krr' of the package other cannot be added: mechanism.id must be new, got 'krr', used by KaryRR",
    ),
    (
        "[uldp_transforms.sources]\nx = tiny_classes:Taken",
        "from uldp_transforms.jobs.sources.avro_files import AvroFiles\nclass Taken(AvroFiles):\n    pass\n",
        "from uldp_transforms.jobs.sources import SOURCES; list(SOURCES)",
        "source 'x' of the package other cannot be added: source.options must be new, got --input, used by AvroFiles",
    ),
]


@pytest.mark.parametrize(("entry_points", "code", "program", "sentence"), TAKEN, ids=["id", "option"])
def test_what_is_taken_is_refused(tmp_path: Path, entry_points: str, code: str, program: str, sentence: str) -> None:
    distribution(tmp_path, "other", entry_points, tiny_classes=code)
    done = run(tmp_path, program)
    assert done.stderr.splitlines()[-1] == f"uldp_transforms.ldp.errors.SpecError: {sentence}"


def test_known_ids_load_nothing(tmp_path: Path) -> None:
    """A package that cannot be imported does not stop who names what this package has."""
    distribution(tmp_path, "broken", "[uldp_transforms.mechanisms]\nx = not_there:X")
    program = "from uldp_transforms.ldp.mechanisms import MECHANISMS; MECHANISMS['krr']; print('fine'); MECHANISMS['x']"
    done = run(tmp_path, program)
    assert done.stdout == "fine\n"
    assert done.stderr.endswith("mechanism 'x' of the package broken cannot be added: No module named 'not_there'\n")


ESTIMATING = "import sys; from uldp_transforms.jobs import estimate; sys.exit(estimate.main(sys.argv[1:]))"
EVALUATING = "import sys; from uldp_transforms_planner import evaluate; sys.exit(evaluate.main(sys.argv[1:]))"
BROKEN = [
    ("estimator", ESTIMATING, "--help all"),
    ("estimator", ESTIMATING, "--collection krr.json --input in.avro --output out --estimator tiny-cut"),
    ("estimator", EVALUATING, "--values people.csv --estimators tiny-cut"),
    ("mechanism", EVALUATING, "--values people.csv --mechanisms tiny-rr"),
    ("mechanism", EVALUATING, "--values people.csv"),
    ("source", ESTIMATING, "--collection krr.json --input in.avro --output out"),
    ("sink", ESTIMATING, "--collection krr.json --input in.avro --output out"),
]


def folder_of_a_job(folder: Path, kind: str) -> None:
    """Input of both programs, and a package whose class of a kind cannot be imported."""
    entry_points = f"[uldp_transforms.{kind}s]\nx = broken_classes:X\n"
    distribution(folder, "broken", entry_points, broken_classes="raise RuntimeError('no luck\\ntoday')")
    people = "value\n" + "ant\n" * 3 + "bee\n"
    write_files(folder, {"krr.json": KRR, "in.avro": container([(1, single())]), "people.csv": people})


@pytest.mark.parametrize(("kind", "program", "arguments"), BROKEN)
def test_a_broken_package_ends_a_command_that_needs_it_in_one_sentence(
    tmp_path: Path, kind: str, program: str, arguments: str
) -> None:
    folder_of_a_job(tmp_path, kind)
    done = run_forked(tmp_path, program, *arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    sentence = f"{kind} 'x' of the package broken cannot be added: no luck today\n"
    assert done.stderr.endswith(sentence)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "program", "arguments"),
    [
        ("estimator", ESTIMATING, "--collection krr.json --input in.avro --output out --min_reports 1"),
        ("estimator", EVALUATING, "--values people.csv --mechanisms krr --repetitions 1"),
        ("mechanism", EVALUATING, "--values people.csv --mechanisms krr --repetitions 1"),
    ],
)
def test_a_broken_package_does_not_stop_a_command_that_does_not_need_it(
    tmp_path: Path, kind: str, program: str, arguments: str
) -> None:
    folder_of_a_job(tmp_path, kind)
    done = run_forked(tmp_path, program, *arguments.split())
    assert done.returncode == 0, done.stderr
