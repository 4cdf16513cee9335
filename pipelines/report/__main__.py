"""``python -m pipelines.report`` in a checkout."""

import sys

from uldp_transforms.pipelines.report import main

sys.exit(main())
