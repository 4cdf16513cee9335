"""The programs of the quickstarts, and of the pages on notebooks and tags, run as they stand."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.project.documents import DOCS, ROOT, Block, blocks, require, run, stream
from tests.support import sqlite_query
from tests.support.project.quickstart_folder import COLLECTION, NOON, VALUES
from uldp_transforms import schemas
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection

OVER_FILES = "--collection C.json --input reports.avro --output output --window 1h"
QUICKSTARTS = [DOCS / f"quickstart-{reader}.md" for reader in ("analyst", "beam", "client", "open", "operator")]


def of_page(name: str) -> list[Block]:
    return blocks(DOCS / f"{name}.md")


def messages() -> list[bytes]:
    """The same as the message of a stream."""
    with open("reports.avro", "rb") as file:
        schema = fastavro.parse_schema(schemas.load("report_batch.avsc"))
        [record] = fastavro.reader(file)
    with open("message", "wb") as file:
        fastavro.schemaless_writer(file, schema, record)
    return [Path("message").read_bytes()]


def rows_of_a_stream() -> list[dict[str, Any]]:
    """A row, an earlier pane of its window, and a window without numbers."""
    assert estimate.main(OVER_FILES.split()) == 0
    [row] = map(json.loads, Path("output/estimates.jsonl").read_text(encoding="utf-8").splitlines())
    wrong = [entry | {"raw_frequency": 9.0, "frequency": 9.0} for entry in row["estimates"]]
    nothing = {"status": "suppressed", "num_reports": None, "estimates": []}
    return [
        row,
        row | {"pane_index": -1, "num_reports": row["num_reports"] - 1, "estimates": wrong},
        row | {"run": "20000101T000000Z-ffffff", "pane_index": 9, "num_reports": 10_000, "estimates": wrong},
        row | {"run": None, "pane_index": 9, "num_reports": 10_000, "estimates": wrong},
        row | {"run": "20991231T000000Z-000000", "status": "partial", "num_reports": None, "estimates": []},
        row | nothing | {"window_start": "2001-09-09T13:00:00Z"},
    ]


@pytest.mark.parametrize("page", QUICKSTARTS, ids=lambda page: page.stem)
def test_every_program_says_what_it_needs(page: Path) -> None:
    assert all(block.needs for block in blocks(page))


def test_most_quickstarts_have_programs() -> None:
    assert sum(bool(blocks(page)) for page in QUICKSTARTS) >= len(QUICKSTARTS) - 1, "that of operators has commands"


@pytest.mark.parametrize("page", QUICKSTARTS, ids=lambda page: page.stem)
def test_quickstarts_are_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 100


def test_the_page_of_notebooks_runs_from_its_first_block_to_its_last(
    quickstart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of_a_stream()
    Path("output/estimates.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rows), encoding="utf-8")
    names: dict[str, Any] = {}
    for block in of_page("notebook"):
        require(block.needs)
        exec(block.code, names)  # our own page
    assert len(names["frame"]) == len(VALUES) and Path("shares.html").is_file()
    assert names["rows"]["raw_frequency"].tolist() == [entry["raw_frequency"] for entry in rows[0]["estimates"]]
    assert "suppressed" in capsys.readouterr().out


def test_open_values_with_a_public_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Public texts are estimated precisely, sensitive ones are found although they are on no list."""
    [block] = of_page("quickstart-open")
    require(block.needs)
    run(block, monkeypatch)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shares = {name: float(share.rstrip("%")) / 100 for name, share, *_ in lines}
    lengths = {name: float(high.rstrip("%")) - float(low.rstrip("%")) for name, *_, low, _, high in lines}
    truth = {"news": 0.45, "mail": 0.3, "weather": 0.1, "clinic": 0.1, "union": 0.05, "nobody": 0.0}
    assert set(shares) == set(truth)
    for name, share in truth.items():  # from 8 standard errors of public texts and 6 of others on
        assert abs(shares[name] - share) < (0.05 if name in ("news", "mail", "weather") else 0.1), shares
    assert 0.4 < lengths["weather"] / lengths["clinic"] < 0.8, "which have the same share"


def test_the_analyst_reads_the_latest_panes(
    quickstart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [block] = of_page("quickstart-analyst")
    require(block.needs)
    rows = rows_of_a_stream()
    row = rows[0]
    lines = [json.dumps(line) + "\n" for line in rows]
    Path("output/estimates.jsonl").write_text("".join(lines), encoding="utf-8")
    capsys.readouterr()
    names = run(block, monkeypatch)
    assert len(names["values"]) == len(VALUES)
    means = {value: mean for (*_, value), mean in names["mean"].items()}
    assert means == pytest.approx({entry["value"]: entry["raw_frequency"] for entry in row["estimates"]})
    assert "ci_low" in capsys.readouterr().out


def test_the_query_of_the_analyst_reads_the_latest_panes(quickstart: Path) -> None:
    [block] = blocks(DOCS / "quickstart-analyst.md", "sql")
    rows = rows_of_a_stream()
    columns = list(rows[0])
    with sqlite3.connect(":memory:") as database:
        database.execute("ATTACH ':memory:' AS my_dataset")
        quoted = ", ".join(f'"{name}"' for name in columns)
        database.execute(f"CREATE TABLE my_dataset.estimates ({quoted})")
        stored = [
            [json.dumps(cell) if isinstance(cell, (list, dict)) else cell for cell in row.values()] for row in rows
        ]
        database.executemany(f"INSERT INTO my_dataset.estimates VALUES ({', '.join('?' * len(columns))})", stored)
        found = database.execute(sqlite_query.translated(block.code)).fetchall()
    latest = sorted((entry["frequency"] for entry in rows[0]["estimates"]), reverse=True)
    assert [row[2] for row in found] == latest


@pytest.mark.parametrize(
    "block",
    [*of_page("quickstart-beam"), *of_page("test-your-pipeline")],
    ids=lambda block: f"{block.number}-{block.needs}",
)
def test_the_pipelines_print_rows(
    block: Block, quickstart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require(block.needs)
    if "ReadFromPubSub" in block.code:
        stream(messages(), NOON + 60, monkeypatch)
    run(block, monkeypatch)
    out = capsys.readouterr().out
    for value in VALUES:
        assert re.search(rf"\b{value}\b", out)


def test_the_client_makes_a_message(
    quickstart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    once, every_day = of_page("quickstart-client")
    require(once.needs)
    run(once, monkeypatch)
    prefix = Collection.from_json(COLLECTION).fingerprint[:8].hex()
    assert capsys.readouterr().out.startswith(f"02{prefix}")
    require(every_day.needs)
    run(every_day, monkeypatch)
    assert (quickstart / "state.json").stat().st_size > 0


@pytest.mark.parametrize("page", [ROOT / "README.md", *QUICKSTARTS, DOCS / "operations.md"], ids=lambda page: page.stem)
def test_options_of_commands_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands of ``uldp estimate`` name only options that the program has."""
    with pytest.raises(SystemExit):
        estimate.main(["--help", "all"])
    known = set(re.findall(r"--\w+", capsys.readouterr().out)) | {"--streaming", "--runner"}
    text = "\n".join(block.code for block in blocks(page, "sh")).replace("\\\n", " ")
    for command in re.findall(r"^uldp estimate (.*)$", text, flags=re.MULTILINE):
        assert set(re.findall(r"--\w+", command)) <= known


def test_the_tags_example_makes_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = of_page("tags")
    names = run(block, monkeypatch)
    assert names["collection"].count(names["report"]).total == 1
    assert names["mine"].hide(["south", "market", "clinic"]) == ["home", "market", "clinic"]
