"""``python -m pipelines.estimate`` in a checkout runs the job under its installed name, which workers know too."""

import sys

from uldp_transforms.pipelines.estimate import main

sys.exit(main())
