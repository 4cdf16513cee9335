"""A spool of messages and its collections in a folder, and the job over its files."""

from __future__ import annotations

import dataclasses
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from tests.support.commands import last_of_each
from tests.support.messages_cases import KRR, NOON, RAPPOR, UP, URR, write_files
from tests.support.spool_writer import finished
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

COLLECTIONS = (dataclasses.replace(KRR, question="asked"), dataclasses.replace(UP, question="asked"), URR, RAPPOR)
MINUTE = 60_000


class Spool:
    """A spool with its collections in a folder, and the output of a job over its files."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        of: Sequence[Collection] = COLLECTIONS,
        values: Sequence[str] | None = None,
    ):
        """With what people hold; None: the listed values."""
        self.of, self.values = of, values
        self.spool, self.output, self.batch = folder / "spool", folder / "out", folder / "batch"
        self.spool.mkdir(parents=True)
        (self.spool / "lock").touch()
        write_files(folder, {f"{c.id}.json": c for c in of})
        self.window = last_of_each(["--window", "1m", "--min_reports", "1", *options])
        self.collections = [f"--collection={folder / c.id}.json" for c in of]
        self._rng = np.random.default_rng(26)

    def messages(self, reports: int = 60, minutes: int = 4) -> list[bytes]:
        """Packs, and bytes that are no report, over several windows."""
        found = []
        for collection in self.of:
            times = (NOON // MINUTE * MINUTE + self._rng.integers(0, minutes * MINUTE, reports)).tolist()
            values = self._rng.choice(self.values or collection.alphabet.known_values, reports).tolist()
            found.append(
                wire.encode_batch(collection.perturb(values, self._rng, times, self._groups(collection, reports)))
            )
        spoiled = bytearray(found[-1])
        spoiled[1] ^= 0xFF  # another collection
        return [*found, bytes(spoiled)]

    def _groups(self, collection: Collection, reports: int) -> dict[str, list[str]] | None:
        own = [one for one in collection.dimensions if one.is_own]
        return {one.name: self._rng.choice(one.all_values, reports).tolist() for one in own} or None

    def add_file(self, reports: int = 60, minutes: int = 4) -> str:
        """Finish a file of packs, and bytes that are no report."""
        return finished(self.spool, self.messages(reports, minutes)).name

    def run_batch(self, code: int = 0) -> None:
        """The job over all reports, on an engine; it ends with this code."""
        options = [*self.collections, "--output", str(self.batch), *self.window, "--write_counts"]
        assert estimate.main([*self.batch_source(), *options]) == code

    def batch_source(self) -> list[str]:
        """The options that name the same reports for a job that ends."""
        return ["--input", str(self.spool / "*.avro"), "--manifest", str(self.spool / "*.manifest.json")]

    def rows(self, kind: str, folder: Path | None = None) -> list[dict[str, Any]]:
        """Rows in JSON lines."""
        paths = sorted((folder or self.output).glob(f"{kind}*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def counts(self, folder: Path) -> dict[Any, Any]:
        """Numbers of reports and cells of the last pane of each collection and window; panes are never repeated."""
        last: dict[Any, Any] = {}
        panes: Counter[Any] = Counter()
        for path in folder.glob("counts*.avro"):
            for row in fastavro.reader(io.BytesIO(path.read_bytes())):
                key = (row["fingerprint"], row["window_start"], row["group"])
                panes[(*key, row["pane_index"])] += 1
                last[key] = max(last.get(key, (-1,)), (row["pane_index"], row["num_reports"], row["cells"]))
        assert set(panes.values()) <= {1}
        return {key: row[1:] for key, row in last.items()}

    def estimates(self, folder: Path) -> dict[Any, Any]:
        """What the last pane of each collection and window says of the values, without its intervals: those of
        corrected rows are wider."""
        last: dict[Any, Any] = {}
        for row in self.rows("estimates", folder):
            key = (row["fingerprint"], row["window_start"], row["group"])
            whole = [row[name] for name in ("num_reports", "status", "estimator", "unexplained_mass", "fit_p_value")]
            values = [(each["value"], each["frequency"], each["standard_error"]) for each in row["estimates"]]
            last[key] = max(last.get(key, (-1,)), (row["pane_index"], whole, values))
        return {key: row[1:] for key, row in last.items()}
