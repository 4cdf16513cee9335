"""Estimates the share of undisturbed navigations, and loading times, from a browser's randomized answers.

Prints the share of navigations that were undisturbed (confidence "high"), and for undisturbed and disturbed ones the
mean and a quantile of the loading time, each with its interval. The browser replaces its answer at random at a
rate that it publishes with the answer (PerformanceNavigationTiming.confidence); averages of the answers are biased.
Each navigation counts once, whatever its rate; several rates have a line each and are compared. Rows that cannot be
used are counted by reason, with their places in the file. Exit code 1 if no row can be used, or if the answers do not
fit their rates.
"""

from uldp_transforms_survey.navigations.navigations_command import main

__all__ = ["main"]
