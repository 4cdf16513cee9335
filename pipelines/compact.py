"""``python -m pipelines.compact`` in a checkout is ``uldp compact``."""

import sys

from uldp_transforms.jobs.compact import main

if __name__ == "__main__":
    sys.exit(main())
