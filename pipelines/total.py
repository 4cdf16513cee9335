"""``python -m pipelines.total`` in a checkout is ``uldp total``."""

import sys

from uldp_transforms.jobs.total import main

if __name__ == "__main__":
    sys.exit(main())
