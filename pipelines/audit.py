"""``python -m pipelines.audit`` in a checkout is ``uldp audit``."""

import sys

from uldp_transforms.jobs.audit import main

if __name__ == "__main__":
    sys.exit(main())
