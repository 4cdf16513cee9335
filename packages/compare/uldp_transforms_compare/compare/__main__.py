"""``python -m uldp_transforms_compare.compare`` is ``uldp compare``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("compare")
