"""``python -m pipelines.navigations`` in a checkout is ``uldp navigations``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("navigations")
