"""``python -m uldp_transforms_tables.simulate`` is ``uldp simulate``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("simulate")
