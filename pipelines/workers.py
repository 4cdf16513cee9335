"""``python -m pipelines.workers`` in a checkout is ``uldp workers``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("workers")
