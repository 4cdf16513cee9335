"""``python -m pipelines.regress`` in a checkout is ``uldp regress``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("regress")
