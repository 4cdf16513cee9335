"""Windows of a bundle that are estimated together: rows, windows and panes are those of windows alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from tests.support import replay
from tests.support.messages_cases import KRR, collection
from uldp_transforms import EstimateDistribution
from uldp_transforms.beam.runtime.coders import KEYED_COUNTS
from uldp_transforms.beam.transforms import estimate_distribution
from uldp_transforms.rows.samples import rows_of_samples
from uldp_transforms.windows import Windows

HOUR = 3600
MANY = collection("many", {"id": "closed", "values": [f"v{i}" for i in range(30)]}, "krr")
SPEC = replay.spec([KRR, MANY], Windows(size=HOUR * 1000), bounded=True, min_reports=5)


def counted(_: Any) -> Iterator[TimestampedValue[Any]]:
    """Sums of two collections in nine windows, of which one has too few reports."""
    rng = np.random.default_rng(11)
    for number in range(9):
        for item, values in ((KRR, ["0", "1"]), (MANY, ["v0", "v1", "v2"])):
            counts = item.count(item.perturb(list(rng.choice(values, 3 if number == 4 else 40)), rng))
            yield TimestampedValue((item.fingerprint, counts), number * HOUR + 5)


def rows() -> list[tuple[str, Any, Any, str]]:
    """All rows of one bundle, with their windows and panes; each row also names its window."""
    with replay.collector() as (collect, found):
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            sums = pipeline | beam.Create([None]) | beam.FlatMap(counted).with_output_types(KEYED_COUNTS)
            windows = sums | beam.WindowInto(FixedWindows(HOUR)) | EstimateDistribution(SPEC)
            texts = [part | str(place) >> beam.Map(repr) for place, part in enumerate(windows)]
            _ = texts | beam.Flatten() | "Collect" >> collect
        for text, window, _ in found:
            assert f"window_start='{window.start.to_rfc3339()}'" in text
        return sorted((text, window.start, window.end, repr(pane)) for text, window, pane in found)


@pytest.mark.parametrize(("name", "most"), [("TOGETHER", 1), ("TOGETHER", 4), ("_MOST_CELLS", 0)])
def test_rows_do_not_depend_on_how_many_windows_are_solved_at_once(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = rows()
    assert len(together) == 2 * 2 * 9
    for module in (estimate_distribution, rows_of_samples):
        monkeypatch.setattr(module, name, most, raising=module is estimate_distribution)
    assert rows() == together
