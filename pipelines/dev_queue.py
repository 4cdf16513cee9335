"""``python -m pipelines.dev_queue`` in a checkout is ``uldp dev-queue``."""

import sys

from uldp_transforms.jobs.dev_queue import main

if __name__ == "__main__":
    sys.exit(main())
