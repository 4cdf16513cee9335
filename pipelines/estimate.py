"""``python -m pipelines.estimate`` in a checkout is ``uldp estimate``."""

import sys

from uldp_transforms.jobs.estimate import main

if __name__ == "__main__":
    sys.exit(main())
