"""The size of the package, and for each capability its own code lines and the lines elsewhere that name it.

``python -m tests.campaigns.house [CHECKOUT]`` prints code lines and files of the core, ``labs/`` and the companions,
each with those of its tests, import arrows and circles, and a table of the core: files and code lines of each
capability, its hooks, and hooks / own lines, which is the price of a capability. Code lines are those without
docstrings, comments, blanks and imports. Every file belongs to the first capability whose pattern its path matches. A
hook is a code line of another file that has one of its words. Not counted are the capability's row in the table of
fields, fields of ``Asked``, the steps of ``rows_of``, and files that are made by ``make golden``.
``--hooks NAME`` prints the hooks of a capability.
"""

from __future__ import annotations

import argparse
import ast
import functools
import graphlib
import re
import sys
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from requirements.companions import companions
from tests.support.project.sources import tree_of

ROOT = Path(__file__).parents[2]
PACKAGE = "uldp_transforms"
LABS = "labs"
GENERATED = ("rows/row_types.py", "moved_modules.py")
"""Files that are made from others, or name modules by their former places."""

STEPS = ("rows/samples/asked.py", "rows/samples/rows_of_samples.py")
"""Where capabilities may be named: what is asked of a sample, and the steps of its estimate."""

TABLE = "spec/spec_fields.py"


class Capability(NamedTuple):
    """What users see.

    Attributes:
        name: for people.
        room: regular expression of the paths of its files, below the package.
        words: regular expression of the words of its hooks; empty if it has none of its own.
    """

    name: str
    room: str
    words: str = ""


CAPABILITIES = (
    Capability("declared channels", r"channels/declared_channel", r"declared_channel|DeclaredChannel"),
    Capability("declared priors", r"declared_priors|missing_values", r"\bpriors|missing_rate"),
    Capability(
        "levels", r"mechanisms/nested", r"NestedLevels|nested_levels|nested_channel|level_symbols|named_symbols"
    ),
    Capability(
        "numbers",
        r"ordered|square_wave|number|log_smooth|smooth_figures|figure_(history|rows)|stacked_priors_",
        r"\bnumbers\b|ordered|NumberEstimates|quantile",
    ),
    Capability(
        "sums over chosen values",
        r"share_sums/|sum_history|sum_differences",
        r"share_sums|NamedSum|ShareSums|SumOfShares|ComparedSums|(rows|has|effects|largest|differences|of_moved)_(of_)?sums"
        r"|(read|check|row)_sums|sums_part|sum_figures|WEIGHTED_SUM|WITH_UNIT|\"sums\"|Kind\.SUMS|_SUMS|_with_known_totals"
        r"|(row|rows|asked|part|\ba|\bb)\.(whole_)?sums|\bsums: ComparedSums|self\.sums\b(?!\()",
    ),
    Capability(
        "groups", r"group|borrow|dimensions|stacked_priors|estimate_together", r"\bgroups?\b|dimensions|borrow|\bby\b="
    ),
    Capability("versions of questions", r"version(s|ed|_w|_h)|pool_versions|pooled", r"versions|pooled|same_question"),
    Capability(
        "comparisons and totals",
        r"compar|jobs/total|homogeneity|report/.*/differences|whole_period|pair_rows|sides|two_directories|found_in_words",
        r"compar|whole_period|rows_of_counts",
    ),
    Capability("liars", r"false_reports|poisoning", r"liar"),
    Capability("smoothing and alarms", r"smooth|window_history|alarm", r"smooth|alarm|history"),
    Capability("discovery", r"discover|prefix", r"discover|prefixes"),
    Capability(
        "public blocks",
        r"public_blocks|alphabets/blocks|block_places",
        r"public_blocks|block_(sizes|members|of|places)|stated_sums|\.in_blocks|BlockProblem|\.within\b|confusable",
    ),
    Capability("open lists", r"ldp/solvers/", r"solvers\."),
    Capability(
        "memos and clients",
        r"ldp/client/|client_window|repeated_people|composition|longitudinal|unknown_repeats",
        r"(\b|_)memos?(\b|_)|epsilon_inf|client_window",
    ),
    Capability("tagged values", r"alphabets/tagged|personalised", r"tagged|personalised"),
    Capability("planner and evaluate", r"packages/planner/|error_charts", r"planning|forecast"),
    Capability("sentinels and health", r"sentinel|window_health|bit_patterns|bit_totals", r"sentinel|bit_patterns"),
    Capability("Kafka", r"kafka", r"kafka"),
    Capability("Pub/Sub", r"pubsub", r"pubsub"),
    Capability("BigQuery and SQL", r"bigquery|jobs/sql", r"bigquery"),
    Capability("pages and pictures", r"jobs/(pictures|records/row_)|packages/report/|display", r"drawing\("),
    Capability("stored counts", r"jobs/(reestimate|check)|stored_counts|superseded", r"reestimate|superseded"),
    Capability("records and ledger", r"jobs/records|accounts/|ledger", r"ledger"),
    Capability("engines", r"jobs/(engines|workers)|local_pubsub", r"engines\."),
    Capability("people's tables", r"packages/tables/uldp_transforms_tables/\w+\.py", r"values_file|event_times"),
    Capability(
        "completion, describe, audit, export",
        r"jobs/(completion|describe|audit|export)|ldp/privacy|client_form|canaries",
        r"completion",
    ),
    Capability("simulate", r"packages/tables/uldp_transforms_tables/simulate", r"simulate\b"),
    Capability("deduplication", r"deduplicate|known_(ids|reports)", r"dedup"),
)
"""Features of the package; all other files are its core. A file of two of them is of the first."""


class Source(NamedTuple):
    """A module: its lines, and the numbers of those that are code."""

    lines: Sequence[str]
    code: frozenset[int]
    tree: ast.Module


def source_of(path: Path) -> Source:
    """The code lines of a file: without docstrings, comments, blanks and imports."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), tree_of(path)
    without = {number for number, line in enumerate(lines, 1) if re.match(r"\s*(#|$)", line)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            without -= _lines_of(node)  # blanks and # inside of a text
    for node in ast.walk(tree):
        is_text = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            without |= _lines_of(node)
    return Source(lines, frozenset(range(1, len(lines) + 1)) - without, tree)


def _lines_of(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def code_of(folder: Path) -> int:
    """Code lines below a folder."""
    return sum(len(source_of(path).code) for path in sorted(folder.rglob("*.py")))


class House:
    """The package of a checkout, counted.

    Attributes:
        sources: modules of the core, by path below it.
        everywhere: those and the modules of companions, which have the path below the checkout.
        room: name of the capability of each path; empty for none.
    """

    def __init__(self, root: Path = ROOT):
        folder = root / PACKAGE
        self.sources = {str(path.relative_to(folder)): source_of(path) for path in sorted(folder.rglob("*.py"))}
        beside = (path for each in companions(root) for path in sorted(each.sources.rglob("*.py")))
        self.everywhere = self.sources | {str(path.relative_to(root)): source_of(path) for path in beside}
        self.room = {
            path: next((one.name for one in CAPABILITIES if re.search(one.room, path)), "") for path in self.everywhere
        }

    @property
    def code(self) -> int:
        """Code lines of the core."""
        return sum(len(source.code) for source in self.sources.values())

    def own(self, capability: Capability) -> int:
        """Code lines of a capability."""
        return sum(len(self.everywhere[path].code) for path in self.files(capability))

    def files(self, capability: Capability) -> list[str]:
        return [path for path, name in self.room.items() if name == capability.name]

    def hooks(self, capability: Capability) -> dict[str, list[int]]:
        """Numbers of the lines that name a capability, by path."""
        found: dict[str, list[int]] = {}
        for path, source in self.everywhere.items():
            if self.room[path] == capability.name or path.endswith((*GENERATED, *STEPS)):
                continue
            if not re.search(capability.words, "\n".join(source.lines)):  # much faster than line by line
                continue
            code = source.code - (_rows_of_table(source, capability.words) if path.endswith(TABLE) else set())
            lines = [at for at in sorted(code) if re.search(capability.words, source.lines[at - 1])]
            if lines:
                found[path] = lines
        return found

    def price(self, capability: Capability) -> tuple[int, int, float]:
        """Own lines, hooks, and hooks / own lines of a capability."""
        own, hooks = self.own(capability), sum(map(len, self.hooks(capability).values()))
        return own, hooks, hooks / max(own, 1)

    @functools.cached_property
    def arrows(self) -> dict[str, set[str]]:
        """The modules that each module imports."""
        trees = {_module(path): source.tree for path, source in self.sources.items()}
        return {name: {*_imports(tree, trees.keys())} - {name} for name, tree in trees.items()}

    @property
    def is_without_circles(self) -> bool:
        """Whether modules can be put in an order in which each one imports earlier ones only."""
        try:
            graphlib.TopologicalSorter(self.arrows).prepare()
        except graphlib.CycleError:
            return False
        return True


def _rows_of_table(source: Source, words: str) -> set[int]:
    """Lines of the fields of the specification that a capability is named after."""
    rows = (
        node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "SpecField"
    )
    return {
        at
        for row in rows
        if any(
            keyword.arg == "name" and re.search(words, ast.unparse(keyword.value).strip("'"))
            for keyword in row.keywords
        )
        for at in range(row.lineno, (row.end_lineno or row.lineno) + 1)
    }


def _module(path: str) -> str:
    return ".".join([PACKAGE, *Path(path).with_suffix("").parts])


def _imports(tree: ast.Module, names: Set[str]) -> Iterator[str]:
    """The modules of the package that are imported when a module is."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names & {*inner, str(node.module), f"{node.module}.__init__"}


def lines_of(root: Path) -> Iterator[str]:
    """What is printed of a checkout."""
    house = House(root)
    tests = code_of(root / "tests")
    arrows, circles = sum(map(len, house.arrows.values())), "no circle" if house.is_without_circles else "circles"
    yield f"{house.code:,} code lines in {len(house.sources):,} files, {tests:,} of tests"
    if (root / LABS).is_dir():
        code, files = code_of(root / LABS), len(list((root / LABS).rglob("*.py")))
        tests, of_tests = code_of(root / LABS / "tests"), len(list((root / LABS / "tests").rglob("*.py")))
        yield f"{LABS}: {code - tests:,} code lines in {files - of_tests} files, {tests:,} of tests"
    for each in companions(root):
        files, tests = len(list(each.sources.rglob("*.py"))), code_of(each.tests)
        yield f"{each.distribution}: {code_of(each.sources):,} code lines in {files} files, {tests:,} of tests"
    yield f"{arrows:,} import arrows, {circles}"
    yield f"{'':38}{'files':>6}{'lines':>7}{'hooks':>7}{'ratio':>7}"
    for one in CAPABILITIES:
        own, hooks, ratio = house.price(one)
        yield f"{one.name:38}{len(house.files(one)):6}{own:7,}{hooks:7,}{ratio:7.2f}"


def hooks_of(root: Path, name: str) -> Iterator[str]:
    """The files with hooks of a capability, the most first, and the lines."""
    house = House(root)
    [capability] = [one for one in CAPABILITIES if one.name == name]
    for path, lines in sorted(house.hooks(capability).items(), key=lambda item: -len(item[1])):
        yield f"{len(lines):4} {path}"
        yield from (f"       {at:4} {house.everywhere[path].lines[at - 1].strip()}" for at in lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT, help="folder of a checkout (default: this one)")
    parser.add_argument("--hooks", choices=[one.name for one in CAPABILITIES], help="print the hooks of a capability")
    args = parser.parse_args(argv)
    lines = lines_of(args.checkout) if args.hooks is None else hooks_of(args.checkout, args.hooks)
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
