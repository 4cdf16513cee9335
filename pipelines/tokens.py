"""``python -m pipelines.tokens`` in a checkout is ``uldp tokens``."""

import sys

from uldp_transforms.jobs.tokens import main

if __name__ == "__main__":
    sys.exit(main())
