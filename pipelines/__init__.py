"""What one starts from a checkout: each module runs the job of the same name of ``uldp_transforms.jobs``."""
