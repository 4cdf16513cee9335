"""Maps from vectors to the probability simplex."""

from __future__ import annotations

import numpy as np


def clip_and_normalize(point: np.ndarray) -> np.ndarray:
    """Set negative entries to 0 and divide the rest by its sum; uniform if no entry is positive.

    Args:
        point: (..., S); one vector along the last axis.
    """
    positive = np.maximum(point, 0)
    total = positive.sum(axis=-1, keepdims=True)
    normalized: np.ndarray = np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / point.shape[-1])
    return normalized


def project_onto_simplex(point: np.ndarray) -> np.ndarray:
    """The distribution nearest to a point, in the Euclidean norm.

    Args:
        point: (..., S); one vector along the last axis.

    Example:
        >>> project_onto_simplex(np.array([0.6, 0.5, -0.2, 0.1])).round(6).tolist()
        [0.533333, 0.433333, 0.0, 0.033333]

    Source: Wang and Carreira-Perpinan 2013.
    """
    point = point - point.max(axis=-1, keepdims=True)  # leaves the projection unchanged and keeps small differences
    descending = np.sort(point, axis=-1)[..., ::-1]
    shifts = (1 - descending.cumsum(axis=-1)) / np.arange(1, point.shape[-1] + 1)
    projected: np.ndarray = np.maximum(point + shifts.min(axis=-1, keepdims=True), 0)
    return projected


def nearest_distribution(point: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The distribution p with the least sum of (p - point)^2 / variances.

    It is max(point + x variances, 0) with the unique x for which the sum is 1. The entries above 0 then sum to 1, and
    no others to more, so x is the least shift with which some number of largest entries sums to 1. For normal estimates
    with these variances it is the maximum-likelihood distribution.

    Args:
        point: (..., S); one vector along the last axis.
        variances: of the same shape, or (S,); above 0.

    Example:
        >>> nearest_distribution(np.array([0.9, 0.4, 0.05]), np.array([0.01, 0.02, 0.02])).round(6).tolist()
        [0.8, 0.2, 0.0]
    """
    variances = np.broadcast_to(variances, point.shape)
    order = (-point / variances).argsort(axis=-1, kind="stable")
    points, spreads = np.take_along_axis(point, order, -1), np.take_along_axis(variances, order, -1)
    shifts = (1 - points.cumsum(axis=-1)) / spreads.cumsum(axis=-1)
    nearest: np.ndarray = np.maximum(point + shifts.min(axis=-1, keepdims=True) * variances, 0)
    return nearest
