"""``python -m pipelines.demo`` in a checkout is ``uldp demo``."""

import sys

from uldp_transforms.jobs.demo import main

if __name__ == "__main__":
    sys.exit(main())
