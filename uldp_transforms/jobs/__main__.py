"""``python -m uldp_transforms.jobs NAME ...`` equals ``uldp NAME ...``, if installed scripts are not on the path."""

import sys

from uldp_transforms.jobs.uldp import main

if __name__ == "__main__":
    sys.exit(main())
