"""``python -m pipelines.check`` in a checkout is ``uldp check``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("check")
