"""``python -m pipelines.completion`` in a checkout is ``uldp completion``."""

import sys

from uldp_transforms.jobs.completion import main

if __name__ == "__main__":
    sys.exit(main())
