"""Programs to start from a checkout: each module runs the job of the same name in ``uldp_transforms.jobs``."""
