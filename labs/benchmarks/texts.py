"""Real texts: host names, which are stored beside this file, and German words, which are downloaded."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).with_name("data")
FETCHED = Path(__file__).parents[2] / "build" / "texts"
GERMAN = "wordfreq/data/small_de.msgpack.gz", "2115b5bb4adb671a3352555a480b9c2f5b03493e9f7e4047997361d62310017a"


def hosts() -> tuple[list[str], list[str]]:
    """Host names, the most popular first, and others in random order, none of them in both (``data/README.md``)."""
    popular, sampled = (
        gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode("ascii").split()
        for name in ("top_hosts", "sampled_hosts")
    )
    known = set(popular)
    return popular, [host for host in dict.fromkeys(sampled) if host not in known]


def german() -> tuple[list[str], np.ndarray]:
    """German words, the most frequent first, and their frequencies, of wordfreq 3.1.1 (Speer 2022).

    Raises:
        CalledProcessError: if they are not here and cannot be fetched.
        ValueError: if what came is something else.
    """
    wheels = list(FETCHED.glob("wordfreq-3.1.1-*.whl"))
    if not wheels:
        print("  fetching German words: wordfreq 3.1.1, 57 MB, into build/texts")
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*fetch, "--dest", str(FETCHED), "wordfreq==3.1.1"], check=True)
        wheels = list(FETCHED.glob("wordfreq-3.1.1-*.whl"))
    name, digest = GERMAN
    with zipfile.ZipFile(wheels[0]) as wheel:
        packed = wheel.read(name)
    if hashlib.sha256(packed).hexdigest() != digest:
        raise ValueError(f"{name} must have the SHA-256 {digest}, got a different one")
    _, *groups = _unpacked(gzip.decompress(packed))
    words = [(word, 10 ** (-hundredths / 100)) for hundredths, group in enumerate(groups) for word in group]
    return [word for word, _ in words], np.array([frequency for _, frequency in words])


def _unpacked(data: bytes) -> Any:
    """Decode groups of words of one frequency from MessagePack of arrays, maps, short texts and small numbers."""
    at = 0

    def size(length: int) -> int:
        nonlocal at
        at += length
        return int.from_bytes(data[at - length : at], "big")

    def item() -> Any:
        nonlocal at
        kind = size(1)
        if kind < 0x80:
            return kind
        if kind < 0x90:
            return {item(): item() for _ in range(kind & 15)}
        if kind < 0xA0 or kind in (0xDC, 0xDD):
            return [item() for _ in range(kind & 15 if kind < 0xA0 else size(2 if kind == 0xDC else 4))]
        length = kind & 31 if kind < 0xC0 else size({0xD9: 1, 0xDA: 2}[kind])
        at += length
        return data[at - length : at].decode("utf-8")

    return item()
