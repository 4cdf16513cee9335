"""Simulated people who report repeatedly, each with a secret, hence one cohort, and one memo per symbol."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence

import numpy as np

from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.client.keyed_words import COHORT, MEMO, SECRET_BYTES, KeyedSource
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.sampling import word_source


class SimulatedPeople:
    """The devices of a population, whose secrets are derived from their names and one secret of the simulation.

    Args:
        collection: collection whose mechanism has ``epsilon_inf``.
        seed: seed of the simulation's secret; None: a new random secret.

    Raises:
        SpecError: if the mechanism keeps no memos.
    """

    def __init__(self, collection: Collection, seed: int | None):
        mechanism = collection.mechanism
        if not isinstance(mechanism, SetReportMechanism) or mechanism.epsilon_inf is None:
            raise SpecError(f"--person_column needs a collection with epsilon_inf, got {mechanism.id} without")
        self._collection, self._mechanism = collection, mechanism
        self._secret = os.urandom(SECRET_BYTES) if seed is None else hashlib.sha256(f"people {seed}".encode()).digest()
        self._devices: dict[str, tuple[bytes, int]] = {}
        self._memos: dict[tuple[str, int], np.ndarray] = {}

    def reports(
        self,
        people: Sequence[str],
        values: Sequence[str],
        rng: np.random.Generator | None,
        times: np.ndarray | None,
        dimensions: Mapping[str, Sequence[str]] | None = None,
    ) -> ReportBatch:
        """One report per row, as from ``Collection.perturb``, but with the memos of these people.

        Raises:
            SpecError: as ``perturb`` does.
        """
        fresh = self._collection.perturb(values, rng, times, dimensions)
        devices = [self._device(person) for person in people]
        cohorts = np.array([cohort for _, cohort in devices], dtype=np.uint16)
        symbols = self._collection.alphabet.encode(values, cohorts, self._collection.num_cohorts).reshape(-1).tolist()
        memos = [self._memo(person, secret, x) for person, (secret, _), x in zip(people, devices, symbols)]
        payloads = self._mechanism.draw_reports(np.array(memos, dtype=np.uint8), word_source(rng))
        stated = self._collection.with_groups(cohorts, self._collection.groups_of(fresh.cohorts))
        return dataclasses.replace(fresh, cohorts=stated, payloads=payloads)

    def _device(self, person: str) -> tuple[bytes, int]:
        """The secret and the cohort of a person's device."""
        if person not in self._devices:
            secret = hashlib.sha256(self._secret + person.encode()).digest()
            cohort = KeyedSource(secret, self._collection.fingerprint, COHORT).integer(self._collection.num_cohorts)
            self._devices[person] = secret, cohort
        return self._devices[person]

    def _memo(self, person: str, secret: bytes, symbol: int) -> np.ndarray:
        if (person, symbol) not in self._memos:
            source = KeyedSource(secret, self._collection.fingerprint, MEMO, symbol)
            self._memos[person, symbol] = self._mechanism.draw_memos(np.array([symbol]), source)[0]
        return self._memos[person, symbol]
