"""``python -m pipelines.reestimate`` in a checkout is ``uldp reestimate``."""

import sys

from uldp_transforms.jobs.reestimate import main

if __name__ == "__main__":
    sys.exit(main())
