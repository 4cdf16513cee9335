"""``python -m pipelines.compare`` in a checkout is ``uldp compare``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("compare")
