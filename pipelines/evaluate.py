"""``python -m pipelines.evaluate`` in a checkout is ``uldp evaluate``."""

import sys

from uldp_transforms.jobs.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
