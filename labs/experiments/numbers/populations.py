"""Populations of numbers on [0, 1], as shares of equal bins."""

from __future__ import annotations

import csv
import functools
import gzip

import numpy as np

from labs.experiments.frame import DATA

FINEST = 512
"""Number of bins of the published decoder, of which the others are sums."""


@functools.cache
def populations() -> dict[str, np.ndarray]:
    """Name -> (512,) shares of people; the last two are real."""
    x = (np.arange(FINEST) + 0.5) / FINEST
    log_normal = np.exp(-0.5 * ((np.log(x) + 1.2) / 0.5) ** 2) / x
    humps = 0.6 * np.exp(-0.5 * ((x - 0.25) / 0.07) ** 2) + 0.4 * np.exp(-0.5 * ((x - 0.7) / 0.1) ** 2) + 0.02
    at_zero = np.exp(-6 * x)
    at_zero[: FINEST // 32] += at_zero.sum() * 16 / FINEST
    at_once = log_normal / log_normal.sum()
    at_once[FINEST // 4] += 1 / 3
    found = {
        "log-normal": log_normal,
        "two humps": humps,
        "uniform": np.ones(FINEST),
        "a third at zero": at_zero,
        "a quarter at one number": at_once,
        "arrival delays": _binned(_delays(), -60, 180),
        "departures of an airport": _binned(_departures(), 0, 160),
    }
    return {name: shares / shares.sum() for name, shares in found.items()}


def coarse(shares: np.ndarray, num_bins: int) -> np.ndarray:
    """(num_bins,): the shares of larger bins."""
    sums: np.ndarray = shares.reshape(num_bins, -1).sum(axis=1)
    return sums


def _binned(numbers: np.ndarray, low: float, high: float) -> np.ndarray:
    """(512,) counts of numbers that are clamped to [low, high]; whole numbers are spread over their unit."""
    fine = np.linspace(0, 1, 101)[:-1]
    spread = (np.clip(numbers, low, high - 1)[:, np.newaxis] + fine).ravel()
    return np.histogram(spread, FINEST, (low, high))[0].astype(np.float64)


def _delays() -> np.ndarray:
    with gzip.open(DATA / "flight_delays_2001_03.csv.gz", "rt", encoding="utf-8") as file:
        return np.array([int(row["value"]) for row in csv.DictReader(file)])


def _departures() -> np.ndarray:
    """Number of departures of each airport and day of 2001."""
    with gzip.open(DATA / "flights_2001_daily.csv.gz", "rt", encoding="utf-8") as file:
        return np.array([[int(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]]).ravel()
