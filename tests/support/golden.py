"""Files that are made from the code and kept for review: golden records, what pages say of each mechanism, views.

``python -m tests.support.golden`` writes them all and prints what changed; tests fail until they are up to date.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support import dataflow_template, failures, protection_lists, row_fields, spec_page, views
from tests.support.capabilities import page as capability_page
from tests.support.golden_records import WIDTH, WRITE, difference
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism, SetReportMechanism

ROOT = Path(__file__).parents[2]
RECORDS = ("tests/golden", "schemas/vectors")
"""Folders of golden records."""


# ---------------------------------------------------------------------- pages


def pages() -> dict[str, str]:
    """Path below the root -> what the file should be, mechanisms being as their classes say."""
    classes = [MECHANISMS[name] for name in MECHANISMS]
    payloads: dict[str, list[str]] = {}
    for cls in classes:
        payloads.setdefault(cls.about.payload, []).append(f"`{cls.id}`")
    of_payload = [[", ".join(names), payload] for payload, names in payloads.items()]
    of_collections = [[f"`{cls.id}`", *cls.about[:3]] for cls in classes]
    return {
        "README.md": protection_lists.filled(_with_tables("README.md")),
        "docs/collections.md": _with_tables(
            "docs/collections.md", (["mechanism", "sends", "protects", "source"], of_collections)
        ),
        "clients/javascript/src/form.js": _with_mechanisms("clients/javascript/src/form.js", classes),
        "docs/client.md": _with_tables(
            "docs/client.md",
            (["`sampler`", "mechanisms", "of these, v = K for"], _samplers(classes)),
        ),
        failures.PATH: failures.filled(_with_tables(failures.PATH)),
        dataflow_template.PATH: dataflow_template.text(ROOT),
        capability_page.PATH: capability_page.filled(
            _with_tables(capability_page.PATH, (capability_page.HEADER, capability_page.rows(ROOT))), ROOT
        ),
        spec_page.PATH: _with_tables(spec_page.PATH, (spec_page.HEADER, spec_page.rows())),
        "docs/threat-model.md": protection_lists.filled(_with_tables("docs/threat-model.md")),
        "docs/wire.md": _with_tables("docs/wire.md", (["mechanism", "payload"], of_payload)),
        "schemas/collection.schema.json": _with_schemas("schemas/collection.schema.json", classes),
        **row_fields.files(ROOT),
        **views.files(),
    }


def _with_tables(path: str, *tables: tuple[list[str], list[list[str]]]) -> str:
    """The page with these rows in the tables that have these headers."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    for header, rows in tables:
        start = lines.index(f"| {' | '.join(header)} |") + 2
        end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
        lines[start:end] = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows]
    return "\n".join(lines) + "\n"


def _sampler_of(cls: type[Mechanism]) -> str:
    """The name of the way in which a client draws a report, or a memo."""
    from tests.support.cases import MECHANISM_CASES  # noqa: PLC0415  # cases reads golden files by this module

    sampler = MECHANISM_CASES[cls.id][0].client_sampler
    name: str = sampler.get("memo", sampler)["sampler"]
    return name


def _samplers(classes: list[type[Mechanism]]) -> list[list[str]]:
    """Rows of the page: a way to draw reports, the mechanisms that use it, and those of them that protect all."""
    rows: dict[str, list[type[Mechanism]]] = {}
    for cls in classes:
        rows.setdefault(_sampler_of(cls), []).append(cls)
    return [
        [f"`{name}`", *(", ".join(f"`{cls.id}`" for cls in row) for row in (members, filter(_protects_all, members)))]
        for name, members in rows.items()
    ]


def _protects_all(cls: type[Mechanism]) -> bool:
    return cls.protects_all


def _with_mechanisms(path: str, classes: list[type[Mechanism]]) -> str:
    """The client in JavaScript with a line for each mechanism: how it draws, and which symbols it protects."""
    text = (ROOT / path).read_text(encoding="utf-8")
    before, start, rest = text.partition("const MECHANISMS = {\n")
    _, end, after = rest.partition("};\n")
    lines = [f'  {cls.id}: ["{_sampler_of(cls)}", {"ALL" if cls.protects_all else "SENSITIVE"}],\n' for cls in classes]
    return before + start + "".join(lines) + end + after


def _with_schemas(path: str, classes: list[type[Mechanism]]) -> str:
    """The JSON Schema of collections with one definition a mechanism, in the place of those that are there."""
    schema = json.loads((ROOT / path).read_text(encoding="utf-8"))
    choice, definitions = schema["properties"]["mechanism"], schema["$defs"]
    before = [entry["$ref"].rsplit("/", 1)[1] for entry in choice["oneOf"]]
    choice["oneOf"] = [{"$ref": f"#/$defs/{cls.id}"} for cls in classes]
    fields = {f.name: f.metadata["schema"] for f in SetReportMechanism.json_fields()}
    shared = {name: fields[name] for name in ("epsilon", "epsilon_inf")}
    kept = {name: entry for name, entry in definitions.items() if name not in (*before, *shared)}
    made = {cls.id: cls.json_schema() for cls in classes}
    for definition in made.values():
        for name, entry in shared.items():
            if definition["properties"].get(name) == entry:
                definition["properties"][name] = {"$ref": f"#/$defs/{name}"}
    schema["$defs"] = kept | made | shared
    return json_text(schema) + "\n"


def json_text(value: Any, indent: str = "", before: str = "") -> str:
    """JSON in which what fits into a line stands in one; ``before`` is what the line holds already."""
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(indent + before + short) < WIDTH:
        return before + short
    inner, (left, right) = f"{indent}  ", "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        parts = [json_text(item, inner, f"{json.dumps(key)}: ") for key, item in value.items()]
    else:
        parts = [json_text(item, inner) for item in value]
    return f"{before}{left}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{right}"


# ---------------------------------------------------------------------- the program


def tests_of_golden_files() -> Iterator[str]:
    """Ids of the tests that ask for a golden file, as pytest takes them."""
    folders = (ROOT / "tests", ROOT / "labs", ROOT / "packages")
    for path in sorted(path for folder in folders for path in folder.rglob("test_*.py")):
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                called = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
                names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in called}
                if "golden" in names and not any(argument.arg == "monkeypatch" for argument in function.args.args):
                    yield f"{path.relative_to(ROOT)}::{function.name}"


def write_pages() -> None:
    for path, text in pages().items():
        (ROOT / path).write_text(text, encoding="utf-8")


def write_records() -> None:
    """By running the tests that ask for them."""
    command = [sys.executable, "-m", "pytest", "--tb=short", *tests_of_golden_files()]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | {WRITE: "1"}, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"Golden files could not be made:\n{run.stdout}{run.stderr}")


def main(write: tuple[Callable[[], None], ...] = (write_pages, write_records, write_pages)) -> int:
    """Write all and print what changed: records need pages that the code reads, and a page has a table of a record."""
    before = _files()
    for step in write:
        step()
    changes = [line for path, text in _files().items() for line in difference(path, before.get(path, ""), text)]
    print(*(changes or ["Everything is up to date."]), sep="\n")
    return 0


def _files() -> dict[str, str]:
    """Path below the root -> text, of all files that this program writes."""
    paths = [*pages(), *(f"{of}/{path.name}" for of in RECORDS for path in sorted((ROOT / of).glob("*.json")))]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


if __name__ == "__main__":
    sys.exit(main())
