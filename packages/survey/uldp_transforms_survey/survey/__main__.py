"""``python -m uldp_transforms_survey.survey`` is ``uldp survey``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("survey")
