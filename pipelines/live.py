"""``python -m pipelines.live`` in a checkout is ``uldp live``."""

import sys

from uldp_transforms.jobs.live import main

if __name__ == "__main__":
    sys.exit(main())
