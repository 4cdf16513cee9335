"""What analysts ask of the rows, in DuckDB, PostgreSQL, a Grafana dashboard and dbt, over the rows of a real run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.sinks.postgres import MISSING, psql
from tests.support.sinks.view_rows import SQL, needs_duckdb
from uldp_transforms import read_rows
from uldp_transforms.jobs import uldp

RESULTS = Path(__file__).parents[3] / "deploy" / "results"
DASHBOARD = json.loads((RESULTS / "grafana.json").read_text("utf-8"))
COLLECTION: dict[str, Any] = {
    "id": "sleep",
    "version": 1,
    "dimensions": [{"name": "arm", "values": ["control", "new", "rare"]}],
    "alphabet": {"id": "closed", "values": ["well", "so-so", "badly"]},
    "mechanism": {"id": "krr", "epsilon": 3.0},
}
needs_postgres = pytest.mark.skipif(bool(MISSING), reason=f"PostgreSQL's {', '.join(MISSING)} not installed")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen days of people in two arms and a few in a third; in the second week they sleep better."""
    folder = tmp_path_factory.mktemp("results")
    rng = np.random.default_rng(11)
    lines = ["value,arm,event_time"]
    for day in range(14):
        for arm, number in (("control", 1500), ("new", 1500), ("rare", 20)):
            well = 0.35 + 0.2 * (day >= 7) + 0.1 * (arm == "new")
            slept = rng.choice(["well", "so-so", "badly"], number, p=[well, 0.7 - well, 0.3])
            lines += [f"{value},{arm},2026-11-{day + 2:02}T12:00:00Z" for value in slept]
    (folder / "V.csv").write_text("\n".join(lines) + "\n")
    (folder / "C.json").write_text(json.dumps(COLLECTION))
    for command in (
        f"simulate {folder}/C.json --values {folder}/V.csv --seed 5 --output {folder}/R.avro",
        f"estimate --collection {folder}/C.json --input {folder}/R.avro --output {folder}/out --window 1d --by arm "
        "--min_reports 100 --write_counts --write_parquet",
        f"total {folder}/out --by arm --min_reports 100",
    ):
        assert uldp.main(command.split()) == 0, command
    return folder / "out"


def statements(name: str) -> list[str]:
    text = re.sub(r"--[^\n]*", "", (RESULTS / name).read_text("utf-8"))
    return [statement for statement in map(str.strip, text.split(";")) if statement]


def duckdb_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that asks DuckDB a query over the rows of this folder."""
    import duckdb  # noqa: PLC0415  # tests without it are skipped

    monkeypatch.chdir(folder)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute((SQL / "latest_duckdb.sql").read_text("utf-8"))
    connection.execute((RESULTS / "duckdb.sql").read_text("utf-8"))
    return lambda query: connection.execute(query).df()


def postgres_over(folder: Path, socket: Path) -> Any:  # the fixture
    """A function that asks PostgreSQL a query, after the files were loaded as the comment of the views says."""
    psql(socket, f"--file={RESULTS / 'postgresql.sql'}")
    load = re.findall(r"^--   (\\copy .*)$", (RESULTS / "postgresql.sql").read_text("utf-8"), re.MULTILINE)
    assert len(load) == 1
    for table in ("estimates", "health", "totals"):
        path = folder / f"{table}.jsonl"
        command = load[0].replace("uldp_estimates", f"uldp_{table}").replace("estimates.jsonl", str(path))
        psql(socket, f"--command=TRUNCATE uldp_{table}")
        psql(socket, f"--command={command}")

    def ask(query: str) -> pd.DataFrame:
        answer = psql(socket, "--csv", "--command=SET timezone = 'UTC'", f"--command={query}")
        lines = answer.splitlines()
        return pd.read_csv(pd.io.common.StringIO("\n".join(lines)), keep_default_na=False, na_values=[])

    return ask


def check_answers(ask: Any, output: Path) -> None:
    """The four answers are those that the rows of read_rows give."""
    last, whole, arms, changed = (ask(query) for query in statements("questions.sql"))
    everybody, groups = read_rows(str(output)), read_rows(str(output), "groups")
    newest = everybody[everybody["window_start"] == everybody["window_start"].max()].set_index("value")
    assert list(last["value"]) == list(newest["frequency"].sort_values(ascending=False).index)
    assert last["display_low"].tolist() == pytest.approx(newest.loc[last["value"], "display_low"].tolist())
    totals = read_rows(str(output), "totals")
    totals = totals[totals["group"].fillna("") == ""].set_index("value")
    assert set(whole["value"]) == {"well", "so-so", "badly"} and (whole["num_reports"] == 14 * 3020).all()
    assert whole["frequency"].tolist() == pytest.approx(totals.loc[whole["value"], "frequency"].tolist())
    shares = groups.pivot(index=["window_start", "value"], columns="group", values="raw_frequency")
    expected = (shares["arm=new"] - shares["arm=control"]).sort_index()
    assert arms["difference"].tolist() == pytest.approx(expected.tolist()) and len(arms) == 14 * 3
    assert ((arms["low"] < arms["difference"]) & (arms["difference"] < arms["high"])).all()
    weeks = everybody.assign(second=everybody["window_start"] >= pd.Timestamp("2026-11-09", tz="UTC"))
    mean = weeks.groupby(["second", "value"]).apply(
        lambda part: np.average(part["raw_frequency"], weights=part["num_reports"]), include_groups=False
    )
    assert sorted(changed["value"]) == ["badly", "so-so", "well"]
    for row in changed.itertuples():
        assert row.difference == pytest.approx(mean[True, row.value] - mean[False, row.value])
    well = changed.set_index("value").loc["well"]
    assert 0 < well["low"] < well["high"] < 0.4  # the truth is 0.2, with more than ten standard errors to each side


@needs_duckdb
def test_duckdb_answers_four_questions(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_answers(duckdb_over(output, monkeypatch), output)


@needs_postgres
def test_postgresql_answers_four_questions(socket: Path, output: Path) -> None:  # the fixture
    check_answers(postgres_over(output, socket), output)


@pytest.fixture(scope="module")
def with_another_version(output: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows, and beside them those of a second version, by a tenth of the people, who all sleep well."""
    folder = shutil.copytree(output, tmp_path_factory.mktemp("versions") / "out")
    for path in folder.glob("*.parquet"):
        path.unlink()
    for name in ("estimates", "health"):
        path = folder / f"{name}.jsonl"
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for row in rows:
            row |= {"collection_version": 2, "fingerprint": "f" * 64}
            if name == "estimates":
                row["num_reports"] = row["num_reports"] and row["num_reports"] // 10
                row["estimates"] = [each | {"frequency": float(each["value"] == "well")} for each in row["estimates"]]
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def queries_of_dashboard() -> dict[str, str]:
    """Each query of the dashboard with Grafana's macros and variables replaced, as Grafana does."""
    found = {panel["title"]: panel["targets"][0]["rawSql"] for panel in DASHBOARD["panels"]}
    found |= {variable["name"]: variable["query"] for variable in DASHBOARD["templating"]["list"]}
    chosen = {"collection": "sleep", "version": "1", "group": "", "value": "well"}
    for name, query in found.items():
        text = re.sub(
            r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN '2026-11-01T00:00:00Z' AND '2026-12-01T00:00:00Z'", query
        )
        text = re.sub(r"\$\{(\w+):sqlstring\}", lambda match: f"'{chosen[match[1]]}'", text)
        assert "$" not in text
        found[name] = text
    return found


def check_dashboard(ask: Any) -> None:
    answers = {name: ask(query) for name, query in queries_of_dashboard().items()}
    shares = answers["Share of $value with its 95 % interval"]
    assert list(shares.columns) == ["time", "share", "low", "high"] and len(shares) == 14
    assert ((shares["low"] <= shares["share"]) & (shares["share"] <= shares["high"])).all()
    assert len(answers["The latest window"]) == 3
    assert answers["Reports in each window"]["reports"].tolist() == [3020] * 14
    assert list(answers["Alarms"].columns) == ["window_start", "group_name", "name", "sentence"]
    groups = answers["Groups: windows with numbers, and reports"].set_index("group")
    assert groups["windows"].tolist() == [14] * 4
    assert groups["with_numbers"].to_dict() == {"everybody": 14, "arm=control": 14, "arm=new": 14, "arm=rare": 0}
    assert answers["collection"].iloc[:, 0].tolist() == ["sleep"]
    assert answers["version"].astype(str).to_numpy().tolist() == [["2", "2"], ["1", "1"]]
    assert answers["group"].to_numpy().tolist()[0] == ["everybody", ""]
    assert answers["value"]["value"].tolist()[0] == "well"


@needs_duckdb
def test_the_queries_of_the_dashboard_run_in_duckdb(
    with_another_version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_dashboard(duckdb_over(with_another_version, monkeypatch))


@needs_postgres
def test_the_queries_of_the_dashboard_run_in_postgresql(
    socket: Path,  # the fixture
    with_another_version: Path,
) -> None:
    check_dashboard(postgres_over(with_another_version, socket))


def test_the_dashboard_has_what_grafana_needs() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == 5
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24 and place["h"] > 0
        assert panel["datasource"]["uid"] == "${DS_POSTGRES}" and panel["type"] in {"timeseries", "table"}
        assert set(re.findall(r"\$\{(\w+):", panel["targets"][0]["rawSql"])) <= names
    taken = {
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    }
    assert len(taken) == sum(panel["gridPos"]["w"] * panel["gridPos"]["h"] for panel in panels), "panels overlap"


def test_dbt_builds_the_models_and_their_tests(output: Path, tmp_path: Path) -> None:
    dbt = shutil.which("dbt")
    if dbt is None:
        pytest.skip("dbt is not installed (pip install dbt-core dbt-duckdb)")
    project = shutil.copytree(RESULTS / "dbt", tmp_path / "project")
    command = [dbt, "build", "--vars", json.dumps({"rows": str(output)}), "--profiles-dir", str(project)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout
    assert "ERROR=0" in done.stdout and "SKIP=0" in done.stdout
