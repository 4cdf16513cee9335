"""Estimates from tables of randomized answers: surveys, regressions on what is known in the clear, and navigations."""
