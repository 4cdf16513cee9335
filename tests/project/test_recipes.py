"""The recipes of CONTRIBUTING.md, performed in a copy of the tree: exactly the files that they name are touched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirements.companions import search_path
from tests.project.documents import ROOT, blocks

NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "site", "*.egg-info", "__pycache__", "node_modules")

MECHANISM = '''"""Randomized response under another id."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from uldp_transforms.ldp.mechanisms.mechanism import About
from uldp_transforms.ldp.mechanisms.randomized_response import KaryRR


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example(KaryRR):
    """Like k-ary randomized response."""

    id: ClassVar[str] = "example"
    about: ClassVar[About] = KaryRR.about._replace(source="an example")
'''

ALPHABET = '''"""A list of values under another id."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from uldp_transforms.ldp.alphabets.closed import Closed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example(Closed):
    """Like a closed alphabet."""

    id: ClassVar[str] = "example"
'''

ESTIMATOR = '''"""Frequencies cut to what a share can be, and the rest shared equally."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import PostProcessed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cut(PostProcessed):
    """Negative frequencies are 0; what is missing is shared equally, and what is too much taken in proportion."""

    id: ClassVar[str] = "cut"

    def post_process(self, raw: np.ndarray) -> np.ndarray:
        shares = np.clip(raw, 0, 1)
        return shares / max(shares.sum(), 1) + max(1 - shares.sum(), 0) / len(shares)
'''


class Tree:
    """A copy of the repository, which knows what was changed in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
        self._before = self._texts()

    def _texts(self) -> dict[str, bytes]:
        paths = (path for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
        found = {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}
        return {name: text for name, text in found.items() if not name.startswith((".", "tests/.hypothesis"))}

    def write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text, encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Edit the first occurrence of a text."""
        text = (self.folder / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new, 1))

    def insert(self, path: str, before: str, line: str) -> None:
        """Add a line before the first occurrence of a text."""
        self.replace(path, before, f"{line}\n{before}")

    def run(self, *command: str) -> str:
        """Run a program of the copy; it must succeed."""
        done = self._done(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *command: str, because: str) -> None:
        """Run a program of the copy; it must fail and print this text."""
        done = self._done(*command)
        assert done.returncode == 1 and because in done.stdout + done.stderr, done.stdout + done.stderr

    def _done(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": search_path(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        arguments = [sys.executable, *command]
        return subprocess.run(arguments, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def test(self, *arguments: str) -> None:
        self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)

    def touched(self) -> set[str]:
        after = self._texts()
        return {name for name in after.keys() | self._before.keys() if after.get(name) != self._before.get(name)}

    def only_grew(self, path: str) -> bool:
        """Whether each record of a golden file stands where it stood."""
        old, new = (
            [line.rstrip(b",") for line in text.splitlines()[:-1]]
            for text in (self._before[path], (self.folder / path).read_bytes())
        )
        return new[: len(old)] == old


@pytest.fixture()
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def recipe(title: str) -> str:
    """A section of the page."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def named(text: str) -> set[str]:
    """The names of files that a recipe writes in code, without their folders."""
    return {name.rpartition("/")[2] for name in re.findall(r"`([\w./-]+\.\w+)`", text)}


VECTORS = {
    f"schemas/vectors/{name}.json"
    for name in ("collections", "costs", "form_fingerprints", "memos", "payloads", "reports", "weights")
}


@pytest.mark.slow
def test_a_mechanism(tree: Tree) -> None:
    """It is put before all others, so that what depends on places would change."""
    table = "uldp_transforms/ldp/mechanisms/__init__.py"
    line = "from uldp_transforms.ldp.mechanisms.example import Example as Example"
    tree.write("uldp_transforms/ldp/mechanisms/example.py", MECHANISM)
    tree.insert(table, "from uldp_transforms.ldp.mechanisms.hadamard_response import (", line)
    tree.insert(table, "        KaryRR,\n", "        Example,")
    cases = "tests/support/cases.py"
    tree.insert(cases, "    HadamardResponse,\n", "    Example,")
    instances = "instances(Example, ALL_SENSITIVE, epsilon=EPSILONS) + memos(Example, [(2, 2)])"
    tree.insert(cases, '    "krr": instances(', f'    "example": {instances},')
    tree.insert("CHANGELOG.md", "\n", "")
    tree.run("-m", "tests.support.golden")
    golden = {*VECTORS, "tests/golden/fingerprints.json"}
    pages = {f"docs/{name}.md" for name in ("client", "collections", "threat-model", "wire")}
    pages |= {"README.md", "schemas/collection.schema.json"}
    by_hand = {"uldp_transforms/ldp/mechanisms/example.py", table, cases, "CHANGELOG.md"}
    assert tree.touched() == golden | pages | by_hand | {"clients/javascript/src/form.js"}
    assert {path.rpartition("/")[2] for path in tree.touched()} - {"example.py"} <= named(recipe("Adding a mechanism"))
    assert all(tree.only_grew(path) for path in VECTORS)
    tree.test("tests/clients/test_vectors.py", "tests/clients/test_independent.py", "tests/project/test_ids.py")
    tree.test(
        "tests/project/test_pages.py",
        "packages/conformance/tests/test_conformance.py",
        "-k",
        "example or page or conform",
    )


@pytest.mark.slow
def test_an_alphabet(tree: Tree) -> None:
    """Its rule is a list, which both other clients know: each gets a line."""
    table, cases = "uldp_transforms/ldp/alphabets/__init__.py", "tests/support/cases.py"
    tree.write("uldp_transforms/ldp/alphabets/example.py", ALPHABET)
    line = "from uldp_transforms.ldp.alphabets.example import Example as Example"
    tree.insert(table, "from uldp_transforms.ldp.alphabets.hashed import", line)
    tree.replace(table, "(Closed,", "(Example, Closed,")
    tree.replace(cases, "import Alphabet, Blocks, Closed,", "import Alphabet, Blocks, Closed, Example,")
    instances = '[("example", Example(values=VALUES, sensitive=SENSITIVE), 2)]'
    tree.insert(cases, '    "closed": [', f'    "example": {instances},')
    row = "| `example` | an example | `values`, `sensitive` | an example |"
    tree.insert("docs/collections.md", "| `closed` | a known list", row)
    tree.replace("docs/wire.md", "symbols of a `closed` alphabet", "symbols of a `closed` or `example` alphabet")
    order, keys = "| `closed` | `sensitive` in its own order", "    | `closed` | `sensitive` (null"
    tree.insert("docs/client.md", order, "| `example` | as of `closed` | as of `closed` |")
    tree.insert("docs/client.md", keys, "    | `example` | `sensitive` (null if it was not given), `values` |")
    schema = "schemas/collection.schema.json"
    tree.insert(schema, '        {"$ref": "#/$defs/closed"},', '        {"$ref": "#/$defs/example"},')
    text = (tree.folder / schema).read_text(encoding="utf-8")
    definition = text[text.index('    "closed": {') : text.index('    "permuted": {')]
    tree.insert(schema, '    "closed": {', definition.replace('"closed"', '"example"').rstrip("\n"))
    specs = "tests/rows/test_schemas.py"
    spec = '    "example": CLOSED | {"alphabet": CLOSED["alphabet"] | {"id": "example"}},'
    tree.insert(specs, '    "closed": CLOSED,', spec)
    tree.insert("clients/javascript/src/form.js", "  closed: (alphabet)", "  example: (alphabet) => list(alphabet),")
    other = "tests/clients/independent.py"
    tree.insert(other, '        "closed": {"sensitive": None},', '        "example": {"sensitive": None},')
    tree.replace(other, 'in ("closed", "tagged"):', 'in ("closed", "tagged", "example"):')
    tree.insert("CHANGELOG.md", "\n", "")
    tree.run("-m", "tests.support.golden")
    written = ("collections", "form_fingerprints", "reports", "symbols")
    golden = {f"schemas/vectors/{name}.json" for name in written}
    by_hand = {"uldp_transforms/ldp/alphabets/example.py", table, cases, schema, specs, other, "CHANGELOG.md"}
    by_hand |= {"docs/collections.md", "docs/wire.md", "docs/client.md", "clients/javascript/src/form.js"}
    assert tree.touched() == golden | by_hand | {"tests/golden/fingerprints.json"}
    assert {path.rpartition("/")[2] for path in tree.touched()} - {"example.py"} <= named(recipe("Adding an alphabet"))
    assert all(tree.only_grew(path) for path in golden)
    tree.test("tests/clients/test_vectors.py", "tests/clients/test_independent.py", "tests/project/test_ids.py")
    tree.test(specs, "tests/project/test_readme.py", "tests/ldp/alphabets", "-k", "example or good or list_every_id")


@pytest.mark.slow
def test_an_estimator(tree: Tree) -> None:
    table = "uldp_transforms/ldp/estimators/__init__.py"
    line = "from uldp_transforms.ldp.estimators.cut import Cut as Cut"
    tree.write("uldp_transforms/ldp/estimators/cut.py", ESTIMATOR)
    tree.insert(table, "from uldp_transforms.ldp.estimators.empirical import", line)
    tree.replace(table, "    (EmpiricalBayes,", "    (Cut, EmpiricalBayes,")
    cases = "tests/support/cases.py"
    tree.insert(cases, "    Empirical,\n", "    Cut,")
    tree.insert(cases, '    "eb": [', '    "cut": [Cut()],')
    tree.insert("docs/collections.md", "| `projected` |", "| `cut` | frequencies cut to [0, 1] | an example |")
    tree.insert("CHANGELOG.md", "\n", "")
    by_hand = {"uldp_transforms/ldp/estimators/cut.py", table, cases, "docs/collections.md", "CHANGELOG.md"}
    assert tree.touched() == by_hand
    tree.run("-m", "tests.support.golden")
    assert tree.touched() == by_hand | {"docs/estimate-reports.md", "deploy/dataflow/metadata.json"}
    assert {path.rpartition("/")[2] for path in tree.touched()} - {"cut.py"} <= named(recipe("Adding an estimator"))
    checked = "from uldp_transforms.ldp.estimators import Cut; "
    checked += "from uldp_transforms_conformance import check_estimator; check_estimator(Cut)"
    tree.run("-c", checked)
    suites = ["packages/conformance/tests/test_conformance.py", "-k", "cut", "-m", "slow or not slow"]
    tree.test(*suites)
    tree.test("tests/ldp/estimators/test_estimators.py", "tests/project/test_readme.py", "-k", "cut or list_every_id")
    lawless = ESTIMATOR.replace(" + max(1 - shares.sum(), 0) / len(shares)", "").replace("max(shares.sum(), 1)", "1")
    tree.write("uldp_transforms/ldp/estimators/cut.py", lawless)
    tree.fails("-c", checked, because="must keep the laws of estimators, got frequencies that sum to ")
    tree.fails("-m", "pytest", "-q", *suites, because="FAILED packages/conformance/tests/test_conformance.py")


REFUSALS = {
    "sources": """    (
        run(estimate.configure, "--collection krr.json --output out --hex_lines good.avro --hex_comment="),
        "--hex_comment must have a letter, got none",
    ),""",
    "sinks": """    (estimating("--lines_kind ledger"), "--lines_kind needs --lines, got none"),
    (streaming("--window 1h --lines x"), "--lines needs a source that ends, got --subscription"),
    (Lines(".", "ledger").prepare, "--lines must be a path of files, got the directory '.'"),""",
}
"""A row for each sentence with which the classes of the page refuse an option."""


CAPABILITY = """    SpecField(
        name="example",
        kind=Kind.SHARE,
        section=Section.ESTIMATES,
        label="Example",
        help="share by which all frequencies are lowered",
        default_text="none",
    ),"""
STEP = """    if asked.example is not None:
        lowered = estimate.raw_frequencies * (1 - asked.example)
        estimate = dataclasses.replace(estimate, raw_frequencies=lowered)"""

IN_PROGRAMS = """
from tests.support import quick_beam
from tests.support.capabilities import jobs, programs
from uldp_transforms_compare.compare import sides

quick_beam.remember()
of_samples = [*jobs.PROGRAMS] if hasattr(sides, "rows_of") else [*jobs.PROGRAMS[:-1]]
for study in ("foods", "diet"):
    for program in of_samples:
        with_it, without = (
            programs.rows_of(program, jobs.job(study, by=("arm",), **more)) for more in ({"example": 0.25}, {})
        )
        assert not isinstance(with_it, str), with_it
        pairs = list(zip(with_it.get("comparisons", []), without.get("comparisons", [])))
        pairs = [(one["difference"], other["difference"]) for one, other in pairs]
        for row, other in zip(with_it.get("estimates", []), without.get("estimates", [])):
            pairs += [
                (one["raw_frequency"], its["raw_frequency"]) for one, its in zip(row["estimates"], other["estimates"])
            ]
        assert len(pairs) >= 4 and all(abs(one - 0.75 * other) < 1e-12 for one, other in pairs), (program, pairs)
        print(study, program)
"""
"""A check that is run in the copy: the share of the field is taken from what each program shows."""


@pytest.mark.slow
def test_a_capability(tree: Tree) -> None:
    """A field and a step: programs over files, streams and stored counts have it, for questions and groups too."""
    fields, spec, values = (f"uldp_transforms/spec/{name}.py" for name in ("spec_fields", "job_spec", "plain_values"))
    asked, steps = (f"uldp_transforms/rows/samples/{name}.py" for name in ("asked", "rows_of_samples"))
    tests = "tests/spec/test_spec.py"
    tree.insert(fields, '    SpecField(\n        name="max_rejected_share"', CAPABILITY)
    tree.insert(spec, "    borrow: bool = False\n", "    example: float | None = None")
    tree.insert(spec, "            borrow=self.borrow,\n", "            example=self.example,")
    tree.insert(values, "    borrow: bool\n", "    example: float | None")
    tree.insert(asked, "    borrow: bool = False\n", "    example: float | None = None")
    tree.insert(steps, "    if asked.anytime_scale is not None:\n        estimate", STEP)
    tree.insert(tests, '    "max_rejected_share": 0.75,\n', '    "example": 0.5,')
    tree.insert(tests, "    max_rejected_share=0.75,\n", "    example=0.5,")
    tree.insert(tests, '        "max_rejected_share": None,\n', '        "example": None,')
    tree.insert("CHANGELOG.md", "\n", "")
    tree.run("-c", "from tests.support import golden; golden.write_pages()")
    by_hand = {fields, spec, values, asked, steps, tests, "CHANGELOG.md"}
    assert tree.touched() == by_hand | {"docs/estimate-reports.md", "deploy/dataflow/metadata.json"}
    written = named(recipe("Adding a capability")) | named(recipe("Adding a field of the specification"))
    assert {path.rpartition("/")[2] for path in tree.touched()} <= written
    assert len(tree.run("-c", IN_PROGRAMS).splitlines()) >= 12
    tree.test(tests, "tests/jobs/commands/test_option_types.py", "tests/project/test_pages.py")


@pytest.mark.slow
def test_a_field_of_a_row(tree: Tree) -> None:
    """One of the ledger, and one of each entry of an estimate, which has a value."""
    ledger, windows, columns = "ledger.avsc", "windowed_estimate.avsc", "uldp_transforms/rows/entry_columns.py"
    field = '{"name": "example", "type": ["null", "double"], "default": null, "doc": "An example."}'
    tree.replace(f"schemas/{ledger}", '"}\n  ]\n}', f'"}},\n    {field}\n  ]\n}}')
    tree.replace(f"schemas/{windows}", '"}\n      ]}}}', f'"}},\n        {field}\n      ]}}}}}}')
    tree.insert(columns, '            "display_low": low,\n', '            "example": 2 * estimate.ci_low[shown],')
    tree.insert("CHANGELOG.md", "\n", "")
    tree.run("-m", "tests.support.golden")
    made = {"uldp_transforms/rows/row_types.py", "schemas/estimated_value.avsc", "tests/golden/tables.json"}
    assert tree.touched() == made | {f"schemas/{ledger}", f"schemas/{windows}", columns, "CHANGELOG.md"}
    touched = {path.rpartition("/")[2] for path in tree.touched()}
    assert touched - {ledger, windows} <= named(recipe("Adding a field of a row"))
    written = (
        "import json; from tests.support.rows import rows_of_all_kinds as t; "
        "from uldp_transforms.rows.json_and_avro import to_json; "
        "from uldp_transforms.rows.windowed_estimate import flat; "
        "row = t.estimate_row(0); read = json.loads(to_json(row)); value = flat(row)[0]; "
        "print(row.estimates[0].example == 2 * t.ESTIMATE.ci_low[0] == read['estimates'][0]['example'], "
        "value.example == row.estimates[0].example, t.ledger_row(0).example)"
    )
    assert tree.run("-c", written).split() == ["True", "True", "None"]
    tree.test(*(f"tests/beam/rows/test_{name}.py" for name in ("rows_in_beam", "entry_columns", "rows")))
    tree.test("tests/rows/test_schemas.py", "tests/jobs/sinks/test_parquet.py", "tests/project/test_pages.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "name", "module", "last", "option"),
    [
        ("sources", "HexLines", "hex_lines", "KafkaTopic", "--hex_comment"),
        ("sinks", "Lines", "row_lines", "BigQueryTables", "--lines_kind"),
    ],
)
def test_a_source_and_a_sink(tree: Tree, folder: str, name: str, module: str, last: str, option: str) -> None:
    """The class of the page, in the file that the page names, and its line."""
    (code,) = (block.code for block in blocks(ROOT / "CONTRIBUTING.md") if f"class {name}(" in block.code)
    place, table = f"uldp_transforms/jobs/{folder}/{module}.py", f"uldp_transforms/jobs/{folder}/__init__.py"
    assert f"`{module}.py`" in recipe(f"Adding a {folder[:-1]}")
    tree.write(place, code)
    line = f"from uldp_transforms.jobs.{folder}.{module} import {name} as {name}"
    tree.insert(table, f"from uldp_transforms.jobs.{folder}.", line)
    tree.insert(table, f"        {last},\n", f"        {name},")
    tree.insert("CHANGELOG.md", "\n", "")
    own = {place, table, "CHANGELOG.md"}
    if folder == "sinks":  # it needs a source that ends, and the template reads a stream
        template = "tests/support/dataflow_template.py"
        tree.replace(template, '{"--bigquery_method"}', '{"--bigquery_method", "--lines", "--lines_kind"}')
        own.add(template)
    errors = "tests/beam/accounts/test_errors_beam.py"
    tree.insert(errors, '    (estimating("--slide 1h"),', REFUSALS[folder])
    beside = "from uldp_transforms.ldp import Collection"
    tree.insert(errors, beside, f"from uldp_transforms.jobs.{folder} import {name}")
    assert tree.touched() == own | {errors}
    assert {path.rpartition("/")[2] for path in tree.touched()} <= named(recipe(f"Adding a {folder[:-1]}"))
    assert tree.run("-m", "tests.support.golden").strip() == "Everything is up to date."
    assert option in tree.run("-m", "pipelines.estimate", "--help", "all")
    tree.test("tests/jobs/engines/test_dataflow.py", errors, "-k", "offers or every_refusal or hex_comment or lines")
