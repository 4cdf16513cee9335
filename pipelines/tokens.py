"""``python -m pipelines.tokens`` in a checkout is ``uldp tokens``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("tokens")
