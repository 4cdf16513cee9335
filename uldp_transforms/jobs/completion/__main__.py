"""``python -m uldp_transforms.jobs.completion`` is ``uldp completion``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("completion")
