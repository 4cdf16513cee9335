"""``python -m uldp_transforms.jobs.reestimate`` is ``uldp reestimate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("reestimate")
