"""``python -m uldp_transforms.jobs.live`` is ``uldp live``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("live")
