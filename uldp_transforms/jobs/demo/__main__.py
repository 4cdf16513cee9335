"""``python -m uldp_transforms.jobs.demo`` is ``uldp demo``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("demo")
