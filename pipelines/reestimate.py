"""``python -m pipelines.reestimate`` in a checkout is ``uldp reestimate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("reestimate")
