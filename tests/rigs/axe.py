"""axe-core, the rules of accessibility that browsers can check, as npm has it.

Needs npm for the first run, which fetches the package; a digest in this file vouches for it.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.rigs.cache import CACHE, require_program

VERSION = "4.14.1"
DIGEST = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
SCRIPT = CACHE / f"axe-core-{VERSION}" / "axe.min.js"


def fetch() -> Path:
    """The script; fetched unless it is in the cache.

    Raises:
        RuntimeError: the package is not the pinned one; nothing is kept.
        CalledProcessError: npm could not fetch it.
    """
    if not SCRIPT.exists():
        require_program("npm", f"fetch {SCRIPT}")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["npm", "pack", "--silent", f"axe-core@{VERSION}"], cwd=folder, check=True)
            content = (Path(folder) / f"axe-core-{VERSION}.tgz").read_bytes()
        if hashlib.sha256(content).hexdigest() != DIGEST:
            raise RuntimeError(f"axe-core {VERSION} must have the SHA-256 digest {DIGEST}, got another package")
        with tarfile.open(fileobj=io.BytesIO(content)) as package:
            member = package.extractfile("package/axe.min.js")
            assert member is not None
            SCRIPT.parent.mkdir(parents=True, exist_ok=True)
            SCRIPT.write_bytes(member.read())
    return SCRIPT


def missing() -> str | None:
    """Why axe-core cannot run here; None if it can."""
    return None if SCRIPT.exists() else f"{SCRIPT} is not there: make axe fetches it"


if __name__ == "__main__":
    print(fetch())
    sys.exit(0)
