"""PTransforms in the order of the flow, one file each."""
