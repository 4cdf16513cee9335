"""Runnable jobs: ``python -m pipelines.simulate``, ``pipelines.estimate`` and ``pipelines.demo``."""
