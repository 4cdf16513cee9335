"""PTransforms in the order of the data flow, one module each."""
