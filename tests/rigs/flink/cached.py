"""Flink, Kafka and a Kafka client in the cache: fetched from Maven and from Python's package index, and verified."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from tests.rigs import cache

FOLDER = Path(__file__).parent
JARS = cache.Jars(source=cache.ROOT / "deploy" / "container", folder=cache.CACHE / "flink-1.19.0-beam-2.70.0")
CLIENT = cache.CACHE / "kafka-python-3.0.12"
"""A Kafka client in Python; not among the requirements of this package, which reads Kafka in Java."""


def fetch() -> None:
    """Fill the cache unless it is there.

    Raises:
        RuntimeError: a jar is not the pinned one; nothing is kept.
        CalledProcessError: Maven or pip could not fetch something, or it has another checksum.
    """
    JARS.fetch()
    if not CLIENT.exists():
        unfinished = CLIENT.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", f"-r{FOLDER / 'client.txt'}", f"--target={unfinished}"], check=True)
        unfinished.rename(CLIENT)


def missing() -> str | None:
    """Why Flink cannot run here; None if it can."""
    return cache.missing("make flink", JARS.folder, CLIENT)


def client() -> ModuleType:
    """The package of the Kafka client."""
    if str(CLIENT) not in sys.path:
        sys.path.append(str(CLIENT))
    return importlib.import_module("kafka")
