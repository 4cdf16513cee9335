"""``python -m pipelines.navigations`` in a checkout is ``uldp navigations``."""

import sys

from uldp_transforms.jobs.navigations import main

if __name__ == "__main__":
    sys.exit(main())
