"""``python -m pipelines.check`` in a checkout is ``uldp check``."""

import sys

from uldp_transforms.jobs.check import main

if __name__ == "__main__":
    sys.exit(main())
