"""``python -m pipelines.describe`` in a checkout is ``uldp describe``."""

import sys

from uldp_transforms.jobs.describe import main

if __name__ == "__main__":
    sys.exit(main())
