"""``python -m pipelines.simulate`` in a checkout is ``uldp simulate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("simulate")
