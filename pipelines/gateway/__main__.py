"""``python -m pipelines.gateway`` in a checkout runs the gateway under its installed name."""

import sys

from uldp_transforms.pipelines.gateway import main

sys.exit(main())
