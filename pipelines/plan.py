"""``python -m pipelines.plan`` in a checkout is ``uldp plan``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("plan")
