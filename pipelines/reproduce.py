"""``python -m pipelines.reproduce`` in a checkout is ``uldp reproduce``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("reproduce")
