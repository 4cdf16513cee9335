"""Beam's interactive runner: a step that is added after the first collection replays what was recorded."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.runners.interactive import interactive_beam as ib
from apache_beam.runners.interactive.interactive_runner import InteractiveRunner

from tests.support.messages_cases import KRR, NOON
from uldp_transforms import EstimateReports
from uldp_transforms.messages import wire

MESSAGE = wire.encode_batch(KRR.perturb(["0", "1"] * 60, np.random.default_rng(1), [NOON] * 120))


@pytest.mark.parametrize(
    "windows",
    [{"window": "1h"}, {"window": "2h", "slide": "1h"}, {"window": "1d", "timezone": "Europe/Vienna"}],
    ids=["fixed", "sliding", "calendar"],
)
def test_a_second_collect_has_the_rows_of_the_first(windows: dict[str, Any]) -> None:
    pipeline = beam.Pipeline(InteractiveRunner())
    messages = pipeline | beam.Create([MESSAGE])
    estimated = messages | EstimateReports(collections=[KRR], with_counts=True, **windows)
    outputs = {name: output for name, output in estimated._asdict().items() if output is not None}
    ib.watch(outputs | {"messages": messages})
    found = {}
    for name, output in outputs.items():
        first = len(ib.collect(output))
        step = output | f"Again{name}" >> beam.Map(lambda row: row._fields[0])
        ib.watch({f"again_{name}": step})
        found[name] = (first, len(ib.collect(step)))
    number = 2 if "slide" in windows else 1
    rows = {"estimates": 1, "values": KRR.alphabet.num_symbols, "health": 1, "counts": 1}
    expected = {name: number * rows[name] for name in rows} | {"ledger": 1, "rejected": 0}
    assert found == {name: (expected[name], expected[name]) for name in outputs}
