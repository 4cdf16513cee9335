"""``python -m pipelines.gateway`` in a checkout is ``uldp gateway``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("gateway")
