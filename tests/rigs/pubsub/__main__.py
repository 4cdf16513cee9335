"""Builds the Pub/Sub server that the tests use besides their own; needs Go."""

from __future__ import annotations

import sys

from tests.rigs.pubsub.server import PSTEST


def main() -> int:
    print(f"{PSTEST.fetch()} [-port=PORT]: Pub/Sub on 127.0.0.1 until its input ends")
    return 0


if __name__ == "__main__":
    sys.exit(main())
