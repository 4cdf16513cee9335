"""``python -m pipelines.reproduce`` in a checkout is ``uldp reproduce``."""

import sys

from labs.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
