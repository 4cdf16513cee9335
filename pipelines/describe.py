"""``python -m pipelines.describe`` in a checkout is ``uldp describe``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("describe")
