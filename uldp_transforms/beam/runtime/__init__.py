"""What engines see of this package: bytes between workers, inputs that fit, metrics, drains."""
