"""The README's examples run as they stand, and it names everything that exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.messages import wire

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_array_example_prints_four_intervals(capsys):
    exec(blocks("python")[0], {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["flu", "cold", "asthma", "hiv"]
    assert all("95 % interval" in line for line in lines)


def test_the_pipeline_example_estimates_a_window():
    names: dict = {}
    exec(blocks("python")[1], names)
    collection = Collection.from_json(
        json.loads(blocks("json")[0]) | {"alphabet": {"id": "closed", "values": ["a", "b"]}}
    )
    message = wire.encode_batch(collection.perturb(["a", "b"] * 100, event_times=[0] * 200))
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = names["estimates"](pipeline | beam.Create([message]), [collection])
        summary = rows | "Summary" >> beam.Map(lambda row: (row.num_reports, row.status, row.window_end))
        assert_that(summary, equal_to([(200, "ok", 86_400_000)]))


def test_the_tags_example_makes_a_report():
    names: dict = {}
    exec(blocks("python")[2], names)
    assert names["collection"].count(names["report"]).total == 1
    assert names["mine"].hide(["south", "market", "clinic"]) == ["home", "market", "clinic"]


@pytest.mark.parametrize("text", blocks("json"))
def test_collections_of_the_readme_are_valid(text):
    Collection.from_json(json.loads(text))


@pytest.mark.parametrize("registry", [ALPHABETS, MECHANISMS, ESTIMATORS])
def test_tables_list_every_id(registry):
    for name in registry:
        assert re.search(rf"^\| `{name}`", README, flags=re.MULTILINE), f"README has no table row for {name}"


def test_commands_and_links_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
