"""``python -m pipelines.live`` in a checkout runs it under its installed name."""

import sys

from uldp_transforms.pipelines.live import main

sys.exit(main())
