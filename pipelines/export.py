"""``python -m pipelines.export`` in a checkout is ``uldp export``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("export")
