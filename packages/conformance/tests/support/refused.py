"""What the checks refuse, and the faults that they find: the kind of error, the call, and its sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.estimators import Projected
from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.mechanisms import AttributeGRR, KaryRR, SquareWave
from uldp_transforms_conformance import ConformanceError, check_estimator, check_mechanism, estimator_laws


class NotAnswering(KaryRR):
    """A mechanism whose client cannot draw."""

    def perturb(self, symbols, source):
        raise ZeroDivisionError("none")


class OtherWidth(KaryRR):
    """A mechanism that makes shorter payloads than it says."""

    @property
    def payload_size(self):
        return 2

    def as_bytes(self, number):
        return bytes([number])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Uniform(PostProcessed):
    """An estimator that looks at nothing."""

    id = "uniform"

    def post_process(self, raw):
        return np.full_like(raw, 1 / len(raw))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lost(Uniform):
    """An estimator that fails."""

    def post_process(self, raw):
        raise ZeroDivisionError("none")


SOME = Collection.from_json(
    {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": list(estimator_laws.VALUES)}}
    | {"mechanism": {"id": "krr", "epsilon": 1}}
)

REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        SpecError,
        lambda: check_mechanism(AttributeGRR),
        "check_mechanism needs instances if fields have no default, got a class with ['priors']",
    ),
    (
        SpecError,
        lambda: check_mechanism(SquareWave(num_symbols=256, num_sensitive=256, epsilon=1.0, half_width=129)),
        "check_mechanism needs instances with one hash function and at most 131072 cells, got other instances",
    ),
    (
        ConformanceError,
        lambda: check_mechanism(NotAnswering(num_symbols=2, num_sensitive=2, epsilon=1.0)),
        "NotAnswering(num_symbols=2, num_sensitive=2, num_hashes=1, epsilon=1.0, epsilon_inf=None) "
        "must not raise, got ZeroDivisionError: none",
    ),
    (
        ConformanceError,
        lambda: check_mechanism(OtherWidth(num_symbols=2, num_sensitive=2, epsilon=1.0)),
        "OtherWidth(num_symbols=2, num_sensitive=2, num_hashes=1, epsilon=1.0, epsilon_inf=None) must "
        "behave as it declares, got payloads whose size is not payload_size = 2 bytes",
    ),
    (
        ConformanceError,
        lambda: check_estimator(Projected, []),
        "Projected() must support at least one of the collections, got none",
    ),
    (
        ConformanceError,
        lambda: check_estimator(Lost, [SOME]),
        "Lost() on 'closed' with 'krr' must not raise, got ZeroDivisionError: none",
    ),
    (
        ConformanceError,
        lambda: check_estimator(Uniform, [SOME]),
        "Uniform() on 'closed' with 'krr' must keep the laws of estimators, got frequencies that "
        "differ from the truth for 1,000,000,000,000 noiseless reports per cohort",
    ),
]
