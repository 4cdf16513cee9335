"""``python -m uldp_transforms_survey.navigations`` is ``uldp navigations``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("navigations")
