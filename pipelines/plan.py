"""``python -m pipelines.plan`` in a checkout is ``uldp plan``."""

import sys

from uldp_transforms.jobs.plan import main

if __name__ == "__main__":
    sys.exit(main())
