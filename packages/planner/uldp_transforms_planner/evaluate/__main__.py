"""``python -m uldp_transforms_planner.evaluate`` is ``uldp evaluate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("evaluate")
