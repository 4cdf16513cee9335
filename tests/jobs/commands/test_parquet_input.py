"""``uldp estimate`` over Parquet files gives the rows of the same reports in Avro files, with the same ledger."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest

from tests.support.ldp.dimensions import ARM, COUNTRY, SPEC
from tests.support.messages_cases import KRR, NOON, decoder, write_files
from uldp_transforms.jobs.uldp import main
from uldp_transforms.ldp import Budget, Client, Collection
from uldp_transforms.messages import wire
from uldp_transforms.messages.manifest import ListedFile, manifest_text
from uldp_transforms.messages.set_groups import SetGroups

JOB = "estimate --collection krr.json --window 1h --min_reports 10 --max_rejected_share 1"
HOUR = 3_600_000
QUERY = "SELECT collection, report_id, event_time, cohort, payload FROM reports"
"""The query of docs/wire.md."""


@pytest.fixture(autouse=True)
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 reports in three hours, in a.avro, and the same as a table in a.parquet."""
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    lines = (f"{number % 3},{1_000_000_800 + 36 * number}" for number in range(300))
    Path("values.csv").write_text("\n".join(["value,event_time", *lines, ""]), encoding="utf-8")
    assert main(shlex.split("simulate krr.json --values values.csv --output a.avro --seed 1")) == 0
    write_table("a.parquet", records("a.avro"))


def records(name: str) -> list[dict[str, Any]]:
    with open(name, "rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]


def write_table(name: str, rows: list[dict[str, Any]]) -> None:
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE reports (collection BLOB, report_id BLOB, event_time BIGINT, cohort INTEGER, payload BLOB)"
        )
        names = ("collection", "report_id", "event_time", "cohort", "payload")
        database.executemany(
            "INSERT INTO reports VALUES (?, ?, ?, ?, ?)", [[row[key] for key in names] for row in rows]
        )
        database.execute(f"COPY ({QUERY}) TO '{name}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def rows_of(kind: str, folder: str) -> list[dict[str, Any]]:
    lines = Path(folder, f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{name: value for name, value in json.loads(line).items() if name != "run"} for line in lines]
    return sorted(rows, key=json.dumps)


def test_the_rows_are_those_of_avro() -> None:
    page = Path(__file__).parents[3] / "docs/wire.md"
    assert QUERY in page.read_text(encoding="utf-8"), "the page has the query that is run here"
    for name in ("avro", "parquet"):
        assert main(shlex.split(f"{JOB} --input a.{name} --output {name} --deduplicate")) == 0
    expected, found = rows_of("estimates", "avro"), rows_of("estimates", "parquet")
    assert [row["num_reports"] for row in expected] == [100, 100, 100]
    assert {row["simulated"] for row in expected} == {True}
    assert {row["simulated"] for row in found} == {False}, "a table says nothing of its randomness"
    assert [row | {"simulated": None} for row in found] == [row | {"simulated": None} for row in expected]
    assert rows_of("ledger", "parquet") == rows_of("ledger", "avro")


def test_both_forms_can_be_mixed(capfd: pytest.CaptureFixture[str]) -> None:
    rows = records("a.avro")
    write_table("b.parquet", [*rows[:5], rows[5] | {"payload": b"\7"}, rows[6] | {"cohort": None}])
    Path("c.parquet").write_bytes(Path("a.parquet").read_bytes()[:-1])
    assert main(shlex.split(f"{JOB} --input '?.*' --output out")) == 7
    said = "estimate: 607 received = 605 accepted + 2 rejected (malformed 1, value_domain 1); "
    assert f"{said}unread files: 1 (bad_magic 1)\n" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "300 received = 300 accepted + 0 rejected"),
        ({"reports": 310}, "310 received = 300 accepted + 10 rejected (not_as_listed 10)"),
        ({"sha256": "0" * 64}, "300 received = 300 accepted + 0 rejected; unread files: 1 (not_as_listed 1)"),
    ],
)
def test_a_manifest_lists_tables_too(change: dict[str, Any], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    content = Path("a.parquet").read_bytes()
    entry = {"name": "a.parquet", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "messages": 1}
    Path("m.json").write_bytes(manifest_text([ListedFile(**entry | {"reports": 300} | change)]))
    code = main(shlex.split(f"{JOB} --input a.parquet --manifest m.json --output out"))
    assert code == (7 if "not_as_listed" in said else 0)
    assert said in capfd.readouterr().err


MEMOS = Collection.from_json(
    SPEC
    | {"dimensions": [COUNTRY | {"set_by": "gateway"}, ARM], "num_cohorts": 5}
    | {"alphabet": {"id": "hashed", "num_buckets": 4}}
    | {"mechanism": {"id": "rappor", "epsilon": 2.0, "epsilon_inf": 4.0}}
)
WHERE = [("DE", "DE"), ("DE", "FR"), ("FR", "PL"), ("PL", "FR")]
"""Countries of a person in the first and the second hour."""


class Memory:
    """Storage of one client in memory."""

    def __init__(self) -> None:
        self._text: str | None = None

    def update(self, change: Any) -> Any:
        self._text, result = change(self._text)
        return result


def set_at_the_gateway(people: int) -> list[dict[str, Any]]:
    """Reports of people with memos, who report in two hours, after the gateway has set their countries.

    A person keeps its cohort, whatever its country.
    """
    door = SetGroups((MEMOS,), "gateway", (("country", "X-Country"),))
    rows: list[dict[str, Any]] = []
    for person in range(people):
        client = Client(MEMOS, Memory(), Budget(epsilon=8.0, lifetime=80.0), window_ms=HOUR)
        arm, cohorts = ("control", "new")[person % 2], set()
        for hour, country in enumerate(WHERE[person % len(WHERE)]):
            report = client.report("a", NOON + hour * HOUR, {"arm": arm})
            assert report is not None
            [message] = wire.encode_reports(report)
            decoded = decoder([MEMOS]).decode([door.in_message(message, [("X-Country", country)])])
            assert not decoded.rejections
            [batch] = decoded.batches
            assert batch.payloads.tobytes() == report.payloads.tobytes(), "a door changes no payload"
            cohorts.add(int(batch.cohorts[0]) % MEMOS.num_cohorts)
            rows.append(
                {"form": 1, "collection": MEMOS.fingerprint[:8], "event_time": int(batch.event_times[0])}
                | {"cohort": int(batch.cohorts[0]), "report_id": batch.report_ids[0].tobytes()}
                | {"payload": batch.payloads[0].tobytes()}
            )
        assert len(cohorts) == 1
    return rows


def test_a_dimension_that_the_gateway_set_is_in_tables_of_people_with_memos() -> None:
    """Groups of Parquet files are those of the same reports in Avro files, and those that were set."""
    rows = set_at_the_gateway(40)
    write_files(Path(), {"memos.json": MEMOS})
    with open("memos.avro", "wb") as file:
        fastavro.writer(file, wire.REPORT_SCHEMA, rows)
    write_table("memos.parquet", rows)
    job = "estimate --collection memos.json --window 1h --by country,arm --candidates c.txt"
    job += " --min_reports 1 --estimator empirical"
    Path("c.txt").write_text("a\nb\n", "utf-8")
    for name in ("avro", "parquet"):
        assert main(shlex.split(f"{job} --input memos.{name} --output {name}")) == 0
    found = rows_of("estimates", "parquet")
    assert found == rows_of("estimates", "avro")
    assert rows_of("ledger", "parquet") == rows_of("ledger", "avro")
    numbers = Counter({(row["window_start"], row["group"]): row["num_reports"] for row in found})
    expected: Counter[tuple[str, str]] = Counter()
    for person in range(40):
        for start, country in zip(sorted({row["window_start"] for row in found}), WHERE[person % 4]):
            group = f"country={country if country != 'PL' else 'other'},arm={('control', 'new')[person % 2]}"
            expected.update([(start, group), (start, "")])
    assert numbers == expected


def test_a_table_whose_times_are_seconds_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    """They were counted in windows of 1970; as timestamps they are what they say."""
    seconds = [row | {"event_time": row["event_time"] // 1000} for row in records("a.avro")]
    write_table("seconds.parquet", seconds)
    line = f"{JOB.replace('_share 1', '_share 0.5')} --input seconds.parquet --output job"
    assert main(shlex.split(line)) == 4
    assert rows_of("estimates", "job") == []
    [ledger] = rows_of("ledger", "job")[-1:]
    assert ledger["rejected"] == {"time_range": 300}
    said = capfd.readouterr().err
    assert "300 of 300 reports were rejected as time_range" in said
    assert "are they in another unit than milliseconds since 1970?" in said
    with duckdb.connect() as database:
        query = "SELECT * REPLACE (to_timestamp(event_time) AS event_time) FROM 'seconds.parquet'"
        database.execute(f"COPY ({query}) TO 'moments.parquet' (FORMAT parquet)")
    assert main(shlex.split(f"{JOB} --input moments.parquet --output moments")) == 0
    sizes: Counter[str] = Counter()
    for row in rows_of("estimates", "moments"):
        sizes[row["window_start"][:10]] += row["num_reports"]
    assert sizes == {"2001-09-09": 300}
