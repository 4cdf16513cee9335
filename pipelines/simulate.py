"""``python -m pipelines.simulate`` in a checkout is ``uldp simulate``."""

import sys

from uldp_transforms.jobs.simulate import main

if __name__ == "__main__":
    sys.exit(main())
