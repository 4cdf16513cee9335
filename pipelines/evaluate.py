"""``python -m pipelines.evaluate`` in a checkout is ``uldp evaluate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("evaluate")
