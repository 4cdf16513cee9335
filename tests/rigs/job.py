"""Reports, and runs of the main job in a process of its own, for trying engines."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.rigs.cache import ROOT
from uldp_transforms.jobs import uldp

REPORTS_OF_A_FILE = 1_000_000
SPEC = {
    "id": "diagnoses",
    "version": 1,
    "alphabet": {"id": "closed", "values": ["flu", "cold", "asthma", "hiv"], "sensitive": ["hiv"]},
    "mechanism": {"id": "urr", "epsilon": 1.0},
}
VALUES = ("flu", "cold", "cold", "asthma", "hiv")
BEGIN, SPAN = 1_600_000_000, 200_000  # seconds: more than two days


def make_reports(folder: Path, form: str, number: int) -> Path:
    """An Avro file ``{form}-{number}.avro`` of reports that are spread over two days.

    Args:
        folder: where to.
        form: single or packed.
        number: of reports.
    """
    values, reports = folder / "values.csv", folder / f"{form}-{number}.avro"
    lines = (f"{VALUES[i % len(VALUES)]},{BEGIN + i * SPAN // number}\n" for i in range(number))
    with values.open("w", encoding="utf-8") as file:
        file.write("value,event_time\n")
        file.writelines(lines)
    options = [str(collection(folder)), f"--values={values}", f"--output={reports}"]
    if uldp.main(["simulate", *options, f"--form={form}", "--pack=10000", f"--seed={number}"]):
        raise RuntimeError(f"the reports could not be made in {folder}")
    return reports


def collection(folder: Path) -> Path:
    """The file of the collection that all these reports belong to."""
    path = folder / "collection.json"
    path.write_text(json.dumps(SPEC), encoding="utf-8")
    return path


def chosen(usual: Sequence[str], options: Sequence[str]) -> list[str]:
    """Options, and those of the usual ones whose names they do not have; the main job takes one value for each."""
    names = {option.partition("=")[0] for option in options}
    return [*(option for option in usual if option.partition("=")[0] not in names), *options]


def run(folder: Path, pattern: str, output: Path, options: list[str]) -> float:
    """Run the main job with windows of 6 hours, one every 3 hours, and return the seconds that it took.

    Args:
        folder: of the collection, and for the log ``{output}.log``.
        pattern: of files of reports.
        output: directory for the rows.
        options: of Beam, or of the job instead of the usual ones.

    Raises:
        RuntimeError: the job did not end well.
    """
    command = [
        sys.executable,
        "-m",
        "uldp_transforms.jobs",
        "estimate",
        f"--collection={collection(folder)}",
        f"--input={pattern}",
    ]
    command += [f"--output={output}", *chosen(["--window=6h", "--slide=3h", "--write_counts"], options)]
    log = output.with_name(f"{output.name}.log")
    begin = time.monotonic()
    with log.open("wb") as out:
        ended = subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, check=False)
    if ended.returncode:
        raise RuntimeError(f"the job ended with {ended.returncode}: {log.read_text('utf-8', 'replace')[-2000:]}")
    return time.monotonic() - begin
