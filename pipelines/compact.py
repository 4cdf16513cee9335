"""``python -m pipelines.compact`` in a checkout is ``uldp compact``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("compact")
