"""Standard errors of surveys: people with weights, in strata and clusters, by linearization.

An estimate that solves sum_j w_j u_j = 0 over people j has the covariance A^-1 B A^-1: A is the slope of that sum, and
B its covariance, which follows from the totals z of clusters c within strata h:

    B = sum_h n_h / (n_h - 1) sum_c (z_hc - mean_h) (z_hc - mean_h)'.

Clusters are taken as drawn with replacement (no finite population correction). Without clusters each person is one.

Source: Binder 1983; Wolter 2007, Introduction to Variance Estimation, section 6.

Letters: N rows, P numbers per row.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.errors import SpecError


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """How the people of N rows were drawn.

    Attributes:
        people: (N,) int64, number of people of a row, above 0.
        weights: (N,) float64, of each of these people, above 0: only their ratios matter.
        strata: (N,) int64, from 0.
        clusters: (N,) int64, from 0: equal numbers in two strata are two clusters; None: each person is one.

    Raises:
        SpecError: if a stratum has only one cluster.
    """

    people: np.ndarray
    weights: np.ndarray
    strata: np.ndarray
    clusters: np.ndarray | None = None

    def __post_init__(self) -> None:
        alone = int((self._sizes == 1).sum())
        if alone:
            what = "people" if self.clusters is None else "clusters"
            raise SpecError(f"each stratum must have at least two {what}, got one in {alone} of them")

    @property
    def _units(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each row its unit, and of each unit its stratum and how many alike it stands for."""
        if self.clusters is None:
            return np.arange(len(self.people)), self.strata, self.people
        kinds, unit = np.unique(np.stack([self.strata, self.clusters]), axis=1, return_inverse=True)
        return unit.reshape(-1), kinds[0], np.ones(kinds.shape[1], dtype=np.int64)

    @property
    def _sizes(self) -> np.ndarray:
        """Clusters of each stratum; 0 for a number that no stratum has."""
        _, strata, alike = self._units
        return np.bincount(strata, weights=alike)

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the covariances: clusters less strata."""
        sizes = self._sizes
        return int(sizes.sum()) - int((sizes > 0).sum())

    @property
    def shares(self) -> np.ndarray:
        """(N,) float64: number of people of a row, weighted; the sum is the number of people."""
        weighted = self.people * self.weights
        scaled: np.ndarray = weighted * (self.people.sum() / weighted.sum())
        return scaled

    def covariance(self, scores: np.ndarray) -> np.ndarray:
        """Covariance (P, P) of the weighted sums of scores.

        Args:
            scores: (N, P) float64, of one person of each row, without its weight.
        """
        unit, strata, alike = self._units
        totals = np.zeros((len(strata), scores.shape[1]))
        np.add.at(totals, unit, scores * self._size[:, np.newaxis])
        sizes = self._sizes
        sums = np.zeros((len(sizes), scores.shape[1]))
        np.add.at(sums, strata, alike[:, np.newaxis] * totals)
        apart = totals - (sums / np.maximum(sizes, 1)[:, np.newaxis])[strata]
        apart *= np.sqrt(alike * (sizes / np.maximum(sizes - 1, 1))[strata])[:, np.newaxis]
        covariance: np.ndarray = apart.T @ apart
        return covariance

    def effect(self, rows: np.ndarray) -> float:
        """Design effect of the people of these rows if all of a cluster answer alike: people / effective clusters.

        Args:
            rows: (N,) bool.
        """
        unit, strata, alike = self._units
        totals = np.bincount(unit[rows], weights=self._size[rows], minlength=len(strata))
        return float(self.people[rows].sum() * (alike @ totals**2) / (alike @ totals) ** 2)

    @property
    def _size(self) -> np.ndarray:
        """(N,) weight with which a row enters the total of its unit."""
        size: np.ndarray = self.shares / (self.people if self.clusters is None else 1)
        return size
