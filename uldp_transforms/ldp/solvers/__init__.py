"""Solvers of the estimators: linear algebra and likelihoods that turn symbol counts into unbiased frequencies."""
