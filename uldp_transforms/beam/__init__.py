"""The Apache Beam layer: the specification of a job, its transforms, and accounts of every report."""

import uldp_transforms.beam.runtime.coders  # noqa: F401  # rows cross between workers by their fields
