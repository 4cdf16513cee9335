"""Runs all benchmarks, or those named on the command line; ``year``, which takes options, only if it is named."""

from __future__ import annotations

import logging
import os
import platform
import sys

import apache_beam
import numpy

from labs.benchmarks import (
    alarms,
    blocks,
    capacity,
    comparisons,
    decoders,
    discovery,
    entries,
    estimation,
    files,
    folded,
    gateway,
    groups,
    javascript,
    kafka,
    library,
    likelihood,
    many_collections,
    many_ids,
    many_pairs,
    many_windows,
    memory,
    open_alphabets,
    pages,
    peers,
    pipeline,
    priors,
    scale,
    smoothing,
    versions,
    wide_memory,
    wide_sums,
    year,
)

# memory comes first: the peak of a child process begins at that of its parent
ALL = {
    "memory": memory,
    "library": library,
    "decoders": decoders,
    "pipeline": pipeline,
    "files": files,
    "estimation": estimation,
    "likelihood": likelihood,
    "blocks": blocks,
    "open": open_alphabets,
    "folded": folded,
    "discovery": discovery,
    "scale": scale,
    "capacity": capacity,
    "many_collections": many_collections,
    "many_ids": many_ids,
    "many_windows": many_windows,
    "many_pairs": many_pairs,
    "peers": peers,
    "smoothing": smoothing,
    "alarms": alarms,
    "gateway": gateway,
    "groups": groups,
    "kafka": kafka,
    "entries": entries,
    "javascript": javascript,
    "wide_sums": wide_sums,
    "wide_memory": wide_memory,
    "versions": versions,
    "comparisons": comparisons,
    "pages": pages,
    "priors": priors,
}


def main(names: list[str]) -> int:
    logging.disable(logging.WARNING)
    if names[:1] == ["year"]:
        return year.main(names[1:])
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"benchmarks: names must be among {', '.join([*ALL, 'year'])}, got {unknown[0]!r}", file=sys.stderr)
        return 2
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
          f"numpy {numpy.__version__}, apache-beam {apache_beam.__version__}")  # fmt: skip
    for name in names or ALL:
        print(f"{name}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        ALL[name].main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
