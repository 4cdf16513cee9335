"""What the launcher of a Dataflow Flex Template runs: it wants a file, not a module."""

import sys

from uldp_transforms.jobs.estimate import main

if __name__ == "__main__":
    sys.exit(main())
