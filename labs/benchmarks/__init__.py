"""Measurements: ``python -m labs.benchmarks [NAME ...]``. Each prints reports per second of CPU time and a ratio.

Machines differ and are noisy, so the figure to compare is the ratio: the same work in plain numpy, measured in the
same run. Nothing here passes or fails.
"""
