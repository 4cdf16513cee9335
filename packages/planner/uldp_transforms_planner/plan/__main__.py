"""``python -m uldp_transforms_planner.plan`` is ``uldp plan``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("plan")
