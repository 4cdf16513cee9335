"""``python -m pipelines.sql`` in a checkout is ``uldp sql``."""

import sys

from uldp_transforms.jobs.sql import main

if __name__ == "__main__":
    sys.exit(main())
