"""Plans of collections before data are collected: expected errors, trials on your own data, and theory.

``planning`` compares the possible collections of a question, ``utility`` has expected losses, worst cases and
guarantees, and ``plan``, ``evaluate`` and ``plan.tokens`` are the programs. Nothing here starts a pipeline.
"""
