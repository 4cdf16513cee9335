"""``python -m pipelines.workers`` in a checkout is ``uldp workers``."""

import sys

from uldp_transforms.jobs.workers import main

if __name__ == "__main__":
    sys.exit(main())
