"""``python -m pipelines.audit`` in a checkout is ``uldp audit``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("audit")
