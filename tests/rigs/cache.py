"""Where engines are kept that are not part of Beam's Python package."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""Of the repository; jobs and workers run there."""

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uldp_transforms"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Jars:
    """What Maven resolves from a ``pom.xml``, pinned byte for byte.

    Attributes:
        source: folder with ``pom.xml`` and ``jars.sha256``.
        folder: of the cache.
    """

    source: Path
    folder: Path

    @property
    def class_path(self) -> str:
        return f"{self.folder}/*"

    def fetch(self) -> None:
        """Fill the folder unless it is there.

        Raises:
            RuntimeError: a jar is not the pinned one; nothing is kept.
            CalledProcessError: Maven could not resolve something.
        """
        if self.folder.exists():
            return
        require_program("mvn", f"fetch what belongs into {self.folder}")
        unfinished = self.folder.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"]
        subprocess.run(["mvn", "--batch-mode", "--quiet", f"--file={self.source / 'pom.xml'}", *copy], check=True)
        wrong = self.mismatches(unfinished)
        if wrong:
            shutil.rmtree(unfinished)
            raise RuntimeError(
                f"jars must be those of {self.source / 'jars.sha256'}, got others for {', '.join(wrong)}"
            )
        unfinished.rename(self.folder)

    def mismatches(self, folder: Path | None = None) -> list[str]:
        """Names of files in a folder, or the cache's, that are missing, too many, or others than the pinned ones."""
        lines = (self.source / "jars.sha256").read_text("utf-8").splitlines()
        pinned = {name: digest for digest, name in (line.split() for line in lines)}
        files = (folder or self.folder).iterdir()
        found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        return sorted(name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name))


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoProgram:
    """A program that is built from sources in Go; ``go.sum`` vouches for the modules that they need.

    Attributes:
        source: folder with ``go.mod``, ``go.sum`` and ``main.go``.
        folder: of the cache, without the digest of the sources: other sources make another name.
        name: of the program.
        command: that builds it.
    """

    source: Path
    folder: Path
    name: str
    command: str

    @property
    def binary(self) -> Path:
        """Where the program stands once it is built."""
        content = b"".join((self.source / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
        return self.folder.with_name(f"{self.folder.name}-{hashlib.sha256(content).hexdigest()[:12]}") / self.name

    def fetch(self) -> Path:
        """The program; built unless it is in the cache (a minute or two)."""
        path = self.binary
        if not path.exists():
            require_program("go", f"build {path}")
            command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(path), "."]
            subprocess.run(command, cwd=self.source, check=True)
        return path

    def missing(self) -> str | None:
        """Why the program cannot run here; None if it can."""
        path = self.binary
        return None if path.exists() else f"{path} is not there: {self.command} builds it"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoCommand:
    """A command of a published module in Go, of one version; Go's checksum database vouches for the source.

    Attributes:
        module: with the path of the command.
        version: such as v2.1.0.
        folder: of the cache.
        command: that builds it here.
    """

    module: str
    version: str
    folder: Path
    command: str

    @property
    def binary(self) -> Path:
        """Where the command stands once it is built."""
        return self.folder / self.module.rpartition("/")[2]

    def fetch(self) -> Path:
        """The command; built unless it is in the cache (a few minutes)."""
        if not self.binary.exists():
            require_program("go", f"build {self.binary}")
            environment = {**os.environ, "GOBIN": str(self.folder)}
            subprocess.run(["go", "install", f"{self.module}@{self.version}"], env=environment, check=True)
        return self.binary

    def missing(self) -> str | None:
        """Why the command cannot run here; None if it can."""
        return None if self.binary.exists() else f"{self.binary} is not there: {self.command} builds it"


def require_program(name: str, what: str) -> None:
    """End this program with a sentence unless another one is there.

    Args:
        name: of the command.
        what: it is needed for.
    """
    if shutil.which(name) is None:
        raise SystemExit(f"{name} must be on PATH, to {what}")


def missing(command: str, *folders: Path) -> str | None:
    """Why what needs Java and these folders cannot run here; None if it can.

    Args:
        command: that fetches the folders.
        folders: of the cache.
    """
    if shutil.which("java") is None:
        return "java is not on PATH"
    absent = [str(folder) for folder in folders if not folder.exists()]
    return f"{' and '.join(absent)} not there: {command} fetches it" if absent else None
