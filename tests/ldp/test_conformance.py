"""``check_mechanism`` and ``check_estimator``: what is right passes, and each kind of fault is found."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import ESTIMATOR_CASES, MECHANISM_CASES
from tests.support.tolerance import generator
from uldp_transforms.ldp.conformance import ConformanceError, check_estimator, check_mechanism
from uldp_transforms.ldp.estimators import Estimator, Projected
from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.mechanisms import HadamardResponse, KaryRR, Mechanism, SubsetSelection, UtilityOptimizedRR

SMALL = {name: [case for case in cases if case.num_symbols < 10][::5] for name, cases in MECHANISM_CASES.items()}


@pytest.mark.parametrize("name", MECHANISM_CASES)
def test_every_mechanism_conforms(name: str) -> None:
    check_mechanism(SMALL[name], generator("conformance", name))


@pytest.mark.parametrize("cls", [KaryRR, UtilityOptimizedRR, HadamardResponse])
def test_instances_of_a_class_are_made(cls: type[Mechanism]) -> None:
    """From the operating system's words."""
    check_mechanism(cls)


@pytest.mark.parametrize("name", ESTIMATOR_CASES)
def test_every_estimator_conforms(name: str) -> None:
    for case in ESTIMATOR_CASES[name]:
        check_estimator(case, rng=generator("conformance", name))


# ---------------------------------------------------------------------- faults of mechanisms


class RaisingClient(HadamardResponse):
    def draw_protected(self, symbols, given, source):
        raise NotImplementedError("no draw")


class RaisingForm(HadamardResponse):
    @property
    def memo_sampler(self):
        raise KeyError("half")


class NoNoise(HadamardResponse):
    """Every client says the truth, whatever the channel is."""

    def draw_protected(self, symbols, given, source):
        return super().draw_protected(symbols, np.ones_like(given), source)


class Unsupported(HadamardResponse):
    """Columns that do not support their symbol are sent as they are."""

    def draw_protected(self, symbols, given, source):
        return super().draw_protected(symbols, np.zeros_like(given), source)


class TooKeen(KaryRR):
    """The coin of a larger epsilon."""

    @property
    def keep_weight(self):
        return 1 << 63


class RarerTriples(HadamardResponse):
    """As if the matrix were of half the size."""

    @property
    def triple_rate(self):
        return Fraction(1, 3)


class FixedSize(HadamardResponse):
    @property
    def support_size(self):
        return 2


class Independent(SubsetSelection):
    independent_bits = True


class OfAnotherOrder(UtilityOptimizedRR):
    """Counts symbols from the last one."""

    def count(self, payloads, groups, num_groups):
        return super().count(payloads, groups, num_groups)[:, ::-1]


class CountsOnce(KaryRR):
    """Equal reports of a group are one."""

    def count(self, payloads, groups, num_groups):
        return np.minimum(super().count(payloads, groups, num_groups), 1)


class Clipped(KaryRR):
    def invert(self, counts):
        return np.clip(super().invert(counts), 0, 1)


class TooSure(KaryRR):
    def variances(self, frequencies):
        return super().variances(frequencies) / 2


class TakesAnything(KaryRR):
    def violations(self, payloads):
        yield from ()


class RefusesItsOwn(KaryRR):
    def is_valid(self, payloads):
        return super().is_valid(payloads) & (payloads[:, 0] > 0)


class OtherLaw(HadamardResponse):
    def log_noise(self, payloads):
        return super().log_noise(payloads) + 1


FAULTS = [
    (RaisingClient, "must not raise, got NotImplementedError: no draw"),
    (RaisingForm, "must not raise, got KeyError: 'half'"),
    (NoNoise, "got reports of symbol 0 whose frequencies differ from the channel"),
    (Unsupported, "got reports of symbol 0 whose frequencies differ from the channel"),
    (TooKeen, "got the ratio .* is above e"),
    (RarerTriples, r"got noise that supports the symbols \(0, 1, 2\) with probability 1/8, whereas triple_rate is 1/6"),
    (FixedSize, "got noise that supports a number of symbols other than support_size"),
    (Independent, "got noise for which independent_bits is not True"),
    (OfAnotherOrder, "got (a response that differs from the expected counts|counts of valid payloads without)"),
    (CountsOnce, "got counts of several reports that are not the sum of their counts"),
    (Clipped, "got a biased inverse"),
    (TooSure, "got variances that differ from those of the inverse"),
    (TakesAnything, "got no violations of payloads that no client can send"),
    (RefusesItsOwn, "got violations of payloads that a client can send"),
    (OtherLaw, "got a log_prob that is not the logarithm of the channel"),
]


@pytest.mark.parametrize(("cls", "sentence"), FAULTS, ids=[cls.__name__ for cls, _ in FAULTS])
def test_a_fault_of_a_mechanism_is_found(cls: type[Mechanism], sentence: str) -> None:
    with pytest.raises(ConformanceError, match=sentence) as caught:
        check_mechanism(cls(num_symbols=5, num_sensitive=5, epsilon=0.5), generator("faults", cls.__name__))
    assert str(caught.value).startswith(f"{cls.__name__}(")
    assert isinstance(caught.value, AssertionError)


# ---------------------------------------------------------------------- faults of estimators


@dataclasses.dataclass(frozen=True, kw_only=True)
class Uniform(PostProcessed):
    id = "uniform"

    def post_process(self, raw):
        return np.full_like(raw, 1 / len(raw))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClippedRaw(Projected):
    def _assemble(self, *parts):
        estimate = super()._assemble(*parts)
        return dataclasses.replace(estimate, raw_frequencies=np.clip(estimate.raw_frequencies, 0.1, 1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Certain(Projected):
    def _assemble(self, *parts):
        estimate = super()._assemble(*parts)
        return dataclasses.replace(estimate, standard_errors=estimate.standard_errors / 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Undefined(Projected):
    def _assemble(self, *parts):
        estimate = super()._assemble(*parts)
        few = estimate.num_reports < 10**6
        return dataclasses.replace(estimate, frequencies=estimate.frequencies * np.nan) if few else estimate


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stranger(Projected):
    def _assemble(self, *parts):
        return dataclasses.replace(super()._assemble(*parts), estimator="other")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SupportsNothing(Projected):
    def refusal(self, model, *, reports=False):
        return "it never can"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Raising(Projected):
    def post_process(self, raw):
        raise ZeroDivisionError("no shares")


FAULTS_OF_ESTIMATORS = [
    (Uniform, "got frequencies that differ from the truth for"),
    (ClippedRaw, "got raw_frequencies that differ from the unbiased ones of the linear estimate"),
    (Certain, "got standard_errors that differ from those of the linear estimate"),
    (Undefined, "got frequencies that are not 5 finite numbers"),
    (Stranger, "got an estimate that names 'other'"),
    (SupportsNothing, "must support at least one of the collections, got none"),
    (Raising, "must not raise, got ZeroDivisionError: no shares"),
]


@pytest.mark.parametrize(
    ("cls", "sentence"), FAULTS_OF_ESTIMATORS, ids=[cls.__name__ for cls, _ in FAULTS_OF_ESTIMATORS]
)
def test_a_fault_of_an_estimator_is_found(cls: type[Estimator], sentence: str) -> None:
    with pytest.raises(ConformanceError, match=sentence):
        check_estimator(cls, rng=generator("faults", cls.__name__))
