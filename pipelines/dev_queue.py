"""``python -m pipelines.dev_queue`` in a checkout is ``uldp dev-queue``."""

from uldp_transforms.jobs.uldp import run_program

if __name__ == "__main__":
    run_program("dev-queue")
