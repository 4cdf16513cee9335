"""``python -m pipelines.sql`` in a checkout is ``uldp sql``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("sql")
