"""Is what is installed what was tested? Asks nobody but this machine.

Run it as ``python -m requirements.audit``. Names of locks may follow; without them they are those that ``make``
installed here. It compares

- versions: every pin of the locks is installed, and nothing else is;
- needs: what ``pip check`` says;
- licences: each is on the list below, or is an exception with a reason;
- content: installed files are those of the wheels, by the hashes that pip wrote down.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements.companions import companions

HERE = Path(__file__).parent
NOT_LOCKED = ("pip", "uldp-transforms", *(each.distribution for each in companions()))
"""What installs, and what is installed from this folder."""

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CNRI-Python",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "PSF-2.0",
    "Zlib",
}
"""Licences that ask for a notice at most."""

AS_IT_IS = "weak copyleft of its own files, which are used unchanged"
EXCEPTIONS: Mapping[str, tuple[str, str]] = {
    "certifi": ("MPL-2.0", AS_IT_IS),
    "hypothesis": ("MPL-2.0", f"{AS_IT_IS}, for tests only"),
    "kubernetes-validate": ("Apache", "its licence file is that of Apache 2.0; for tests only"),
    "orjson": ("MPL-2.0 AND (Apache-2.0 OR MIT)", AS_IT_IS),
    "pathspec": ("MPL-2.0", f"{AS_IT_IS}, for tests and pages only"),
    "quickjs-ng": ("", "names none; its licence file is that of MIT; for Beam YAML only"),
    "shtab": ("MPL-2.0", AS_IT_IS),
    "tqdm": ("MPL-2.0 AND MIT", AS_IT_IS),
}
"""Name -> licence as the package names it, and why it is used nevertheless."""

SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Names from before licences had expressions. Which of the two or three clauses a "BSD License" has makes no
difference here."""


def pins(path: Path) -> list[Requirement]:
    """The lines of a lock without their hashes."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [Requirement(line.partition("--hash=")[0]) for line in lines if line.strip() and line.lstrip()[0] != "#"]


def expected(locks: Iterable[str], environment: dict[str, str] | None = None) -> dict[str, str]:
    """Name -> version that the locks have for an environment; None: this one."""
    found = [pin for lock in locks for pin in pins(HERE / f"{lock}.txt")]
    here = [pin for pin in found if pin.marker is None or pin.marker.evaluate(environment)]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in here}


def installed(path: Sequence[str] | None = None) -> dict[str, importlib.metadata.Distribution]:
    """Name -> what is installed, in these folders; None: where Python looks."""
    found = importlib.metadata.distributions() if path is None else importlib.metadata.distributions(path=list(path))
    return {canonicalize_name(of.metadata["Name"]): of for of in found}


def other_versions(wanted: Mapping[str, str], found: Mapping[str, importlib.metadata.Distribution]) -> Iterator[str]:
    for name, version in wanted.items():
        if name not in found:
            yield f"{name} {version} is in the lock, but not installed"
        elif found[name].version != version:
            yield f"{name} {version} is in the lock, but {found[name].version} is installed"
    for name in set(found) - set(wanted) - set(NOT_LOCKED):
        yield f"{name} {found[name].version} is installed, but in no lock"


def licence(of: importlib.metadata.Distribution) -> str:
    """As SPDX writes it where it is named in a way that is known here, else as it is; "" if none is named."""
    expression = of.metadata.get("License-Expression")
    if expression:
        return expression
    classifiers = [
        line.rpartition(" :: ")[2] for line in of.metadata.get_all("Classifier") or () if "License ::" in line
    ]
    if classifiers:
        return " OR ".join(SPDX.get(name, name) for name in classifiers)
    text = (of.metadata.get("License") or "").strip().partition("\n")[0]
    return SPDX.get(text, text)


def is_allowed(expression: str) -> bool:
    """All parts that AND joins are allowed, or one of those that OR joins."""
    clauses = (re.split(r" OR ", clause) for clause in expression.split(" AND "))
    return all(any(name.strip("() ") in ALLOWED for name in clause) for clause in clauses)


def other_licences(found: Mapping[str, importlib.metadata.Distribution]) -> Iterator[str]:
    for name, of in found.items():
        exception = EXCEPTIONS.get(name)
        if not is_allowed(licence(of)) and (exception is None or exception[0] != licence(of)):
            yield f"{name} {of.version} has the licence {licence(of)!r}, which is neither allowed nor an exception"


def other_files(found: Mapping[str, importlib.metadata.Distribution]) -> Iterator[str]:
    for name, of in found.items():
        for file in of.files or ():
            path = Path(str(file.locate()))
            if file.hash is None:
                continue
            content = hashlib.new(file.hash.mode, path.read_bytes()).digest() if path.is_file() else b""
            if base64.urlsafe_b64encode(content).rstrip(b"=").decode() != file.hash.value:
                yield f"{name} {of.version} has another {file}, or none, where pip wrote one down"


def unmet_needs() -> Iterator[str]:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    if checked.returncode:
        yield from checked.stdout.splitlines()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("locks", nargs="*", help="names of locks, such as test; none: those that make installed here")
    locks = parser.parse_args(argv).locks
    locks = locks or [path.name[1:].removesuffix("-installed") for path in Path(sys.prefix).glob(".*-installed")]
    found = installed()
    print(*(f"{name:40} {of.version:16} {licence(of)}" for name, of in sorted(found.items())), sep="\n")
    print(*(f"exception: {name}, {why}" for name, (_, why) in EXCEPTIONS.items() if name in found), sep="\n")
    faults = [
        *other_versions(expected(["build", *locks]), found),
        *unmet_needs(),
        *other_licences(found),
        *other_files(found),
    ]
    print(*(f"FAULT: {fault}" for fault in sorted(faults)), sep="\n")
    print(f"{len(found)} installed, locks {', '.join(sorted(locks)) or 'none'}: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
