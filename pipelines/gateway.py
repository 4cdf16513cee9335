"""``python -m pipelines.gateway`` in a checkout is ``uldp gateway``."""

import sys

from uldp_transforms.jobs.gateway import main

if __name__ == "__main__":
    sys.exit(main())
