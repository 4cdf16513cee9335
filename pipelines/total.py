"""``python -m pipelines.total`` in a checkout is ``uldp total``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("total")
