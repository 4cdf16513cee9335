"""``python -m uldp_transforms.jobs.estimate`` is ``uldp estimate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("estimate")
