"""``python -m pipelines.demo`` in a checkout is ``uldp demo``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("demo")
