"""Comparisons of stored counts: which groups, windows or directories differ, and by how much.

``compare`` is the program, ``comparisons`` what it computes. Nothing here starts a pipeline.
"""
