"""The former module of ``uldp gateway``, which is a program of a companion now. Release 0.6.0 removes it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from uldp_transforms.jobs import uldp


def main(argv: Sequence[str] | None = None) -> int:
    """Say in one line that this name is deprecated, and run ``uldp gateway``; returns its exit code."""
    print("gateway: uldp_transforms.jobs.gateway is deprecated; use uldp gateway", file=sys.stderr)
    return uldp.main(["gateway", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
