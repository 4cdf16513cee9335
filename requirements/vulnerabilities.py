"""Does a public database know vulnerabilities of the locked packages? Asks OSV (https://osv.dev).

Run it as ``python -m requirements.vulnerabilities``. It sends the names and versions of the locks, and nothing else.
The exit code is 1 if the database knows any that is not an exception, and 2 if it cannot be asked.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from requirements.audit import pins

URL = "https://api.osv.dev"
AT_ONCE = 1_000
"""Maximum number of packages in one query."""

EXCEPTIONS: Mapping[str, str] = {}
"""Id of a vulnerability -> why it does not concern this project."""

Package = tuple[str, str]
"""Name and version."""


def locked(folder: Path) -> list[Package]:
    """Every package of every lock, once."""
    found = {(canonicalize_name(pin.name), str(pin.specifier)) for path in folder.glob("*.txt") for pin in pins(path)}
    return sorted((name, specifier.removeprefix("==")) for name, specifier in found)


def known(packages: Sequence[Package], url: str = URL) -> dict[Package, list[str]]:
    """Package -> ids of its vulnerabilities, for packages that have any; raises OSError and ValueError."""
    found: dict[Package, list[str]] = {}
    for at in range(0, len(packages), AT_ONCE):
        some = packages[at : at + AT_ONCE]
        answers = _asked(url, [{"package": {"name": n, "ecosystem": "PyPI"}, "version": v} for n, v in some])
        if len(answers) != len(some):
            raise ValueError(f"the answer must have {len(some)} results, got {len(answers)}")
        for package, answer in zip(some, answers):
            if answer.get("vulns"):
                found[package] = sorted(each["id"] for each in answer["vulns"])
    return found


def _asked(url: str, queries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(f"{url}/v1/querybatch", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        results: list[Mapping[str, Any]] = json.load(answer)["results"]
    return results


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default=URL, help="of the database")
    packages = locked(Path(__file__).parent)
    try:
        found = known(packages, parser.parse_args(argv).url)
    except (OSError, ValueError, KeyError) as error:
        print(f"the database cannot be asked: {error}", file=sys.stderr)
        return 2
    faults = [(package, name) for package, names in found.items() for name in names if name not in EXCEPTIONS]
    print(
        *(f"FAULT: {name} {version} has {fault}" for (name, version), fault in faults),
        sep="\n",
        end="\n" * bool(faults),
    )
    print(f"{len(packages)} packages asked for: {len(faults)} vulnerabilities")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
