"""``python -m uldp_transforms_report`` is ``uldp report``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("report")
