"""``python -m pipelines.regress`` in a checkout is ``uldp regress``."""

import sys

from uldp_transforms.jobs.regress import main

if __name__ == "__main__":
    sys.exit(main())
