"""Run the installed command on simulated reports: does what was built work where nothing of the checkout is?

Run it as ``PYTHON tests/project/smoke.py`` with the Python of an environment that has the package and none of its
extras, and its companions. It works in a temporary directory and needs nothing but the standard library.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ULDP = Path(sys.executable).with_name("uldp")
PEOPLE = 3000
VALUES = ["flu", "cold", "asthma", "hiv"]
COLLECTION = {
    "id": "diagnoses",
    "version": 1,
    "alphabet": {"id": "closed", "values": VALUES, "sensitive": ["hiv"]},
    "mechanism": {"id": "urr", "epsilon": 4.0},
}


def uldp(folder: Path, command: str) -> str:
    """What a command prints; raises ``subprocess.CalledProcessError`` if it fails."""
    argv = [str(ULDP), *command.split()]
    done = subprocess.run(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
    done.check_returncode()
    return done.stdout


def estimated(folder: Path) -> dict[str, float]:
    """Frequencies of a population of which half has the flu, by simulated reports and the main job over them."""
    (folder / "C.json").write_text(json.dumps(COLLECTION), encoding="utf-8")
    values = ["flu", "cold", "flu", "asthma", "flu", "hiv"] * (PEOPLE // 6)
    (folder / "V.csv").write_text("\n".join(["value", *values, ""]), encoding="utf-8")
    uldp(folder, "audit C.json")
    uldp(folder, "simulate C.json --values V.csv --output R.avro --seed 1")
    uldp(folder, "estimate --collection C.json --input R.avro --output out --window 1d")
    uldp(folder, "check out")
    (row,) = (folder / "out" / "estimates.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["value"]: entry["frequency"] for entry in json.loads(row)["estimates"]}


def refused(folder: Path, command: str) -> str:
    """What a command prints that ends with the exit code of a wrong command line; raises ``ValueError`` if it does
    not."""
    done = subprocess.run([str(ULDP), *command.split()], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 2:
        raise ValueError(f"{command} must end with exit code 2, got {done.returncode}: {done.stderr}")
    return done.stderr


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        version = uldp(Path(folder), "--version").strip()
        for program in ("gateway", "report", "survey"):
            uldp(Path(folder), f"{program} --help")
        frequencies = estimated(Path(folder))
        uldp(Path(folder), "completion bash")
        said = refused(Path(folder), "demo")
    if said.count("\n") != 1 or "in a checkout" not in said:
        print(f"{version}: demo must say in a line that it needs a checkout, got {said}", file=sys.stderr)
        return 1
    if set(frequencies) != set(VALUES) or max(frequencies, key=lambda value: frequencies[value]) != "flu":
        print(f"{version}: estimates must be led by 'flu', got {frequencies}", file=sys.stderr)
        return 1
    print(f"{version} works: {PEOPLE:,} reports, flu {frequencies['flu']:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
