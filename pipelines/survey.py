"""``python -m pipelines.survey`` in a checkout is ``uldp survey``."""

import sys

from uldp_transforms.jobs.survey import main

if __name__ == "__main__":
    sys.exit(main())
