"""``python -m uldp_transforms_gateway`` is ``uldp gateway``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("gateway")
