"""``python -m pipelines.report`` in a checkout is ``uldp report``."""

import sys

from uldp_transforms.jobs.report import main

if __name__ == "__main__":
    sys.exit(main())
