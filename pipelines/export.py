"""``python -m pipelines.export`` in a checkout is ``uldp export``."""

import sys

from uldp_transforms.jobs.export import main

if __name__ == "__main__":
    sys.exit(main())
