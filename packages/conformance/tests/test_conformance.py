"""``check_mechanism`` and ``check_estimator``: what is right passes, and each kind of fault is found."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from packages.conformance.tests.support.refused import Uniform
from tests.support.cases import ESTIMATOR_CASES, MECHANISM_CASES
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Estimate, SpecError
from uldp_transforms.ldp.alphabets import ALPHABETS, Hashed
from uldp_transforms.ldp.estimators import Empirical, Estimator, Projected, Threshold
from uldp_transforms.ldp.estimators.estimator import Decoder, PostProcessed, everybody
from uldp_transforms.ldp.mechanisms import (
    MECHANISMS,
    HadamardResponse,
    KaryRR,
    Mechanism,
    Rappor,
    SquareWave,
    SubsetSelection,
    UtilityOptimizedRR,
    UtilityOptimizedSquareWave,
)
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex
from uldp_transforms_conformance import (
    ConformanceError,
    check_estimator,
    check_mechanism,
    estimator_checks,
    estimator_laws,
    mechanism_checks,
)

SMALL = {name: [case for case in cases if case.num_symbols < 10][::4] for name, cases in MECHANISM_CASES.items()}


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


class LastIsWrong(KaryRR):
    """Sends another symbol in place of the last one."""

    def perturb(self, symbols, source):
        return super().perturb(np.where(symbols == self.num_symbols - 1, 0, symbols), source)


class TooOften(KaryRR):
    """The coin of a larger epsilon: the own symbol alone has a frequency that differs much."""

    coin = 0.8

    def perturb(self, symbols, source):
        return KaryRR(num_symbols=self.num_symbols, num_sensitive=1, epsilon=self.coin).perturb(symbols, source)


class TooRarely(TooOften):
    coin = 0.15


class DrawsWords(KaryRR):
    def perturb(self, symbols, source):
        return super().perturb(symbols, source).astype(np.uint16)


class DrawsOthers(KaryRR):
    """A byte that is none of its payloads, now and then."""

    def perturb(self, symbols, source):
        payloads = super().perturb(symbols, source)
        payloads[-1] = 5
        return payloads


class CountsFloats(KaryRR):
    def count(self, payloads, groups, num_groups):
        return super().count(payloads, groups, num_groups).astype(float)


class CountsOneMore(KaryRR):
    def count(self, payloads, groups, num_groups):
        return np.pad(super().count(payloads, groups, num_groups), ((0, 0), (0, 1)))


SLIGHTLY = 1 + 1e-6


class SlightlyMore(KaryRR):
    def response(self, frequencies):
        return SLIGHTLY * super().response(frequencies)


class SlightlyBiased(KaryRR):
    def invert(self, counts):
        return SLIGHTLY * super().invert(counts)


class SlightlySure(KaryRR):
    def variances(self, frequencies):
        return super().variances(frequencies) / SLIGHTLY


class SlightlyLikelier(KaryRR):
    def log_prob(self, payloads):
        return super().log_prob(payloads) + 1e-6


class OneTooMany(KaryRR):
    @property
    def num_outputs(self):
        return self.num_symbols + 1


class WrongTail(KaryRR):
    @property
    def tail(self):
        return 1, self.num_symbols + 1


class SupportsAnother(KaryRR):
    """Supports other symbols than it counts."""

    def supports(self, payloads):
        return super().supports(payloads)[:, ::-1]

    def count(self, payloads, groups, num_groups):
        return KaryRR(num_symbols=5, num_sensitive=5, epsilon=0.5).count(payloads, groups, num_groups)


class WrongCovariance(KaryRR):
    def covariance(self, frequencies):
        return np.diag(self.variances(frequencies))


class WrongSums(KaryRR):
    def variance_of(self, weights, frequencies):
        return weights**2 @ self.variances(frequencies)


class WrongContrasts(KaryRR):
    def private_variances(self, frequencies):
        return super().private_variances(frequencies) * SLIGHTLY


class OneAtATime(KaryRR):
    """Of stacked distributions, the variances of the first."""

    def variances(self, frequencies):
        return super().variances(frequencies if frequencies.ndim < 3 else frequencies[:, :1] + 0 * frequencies)


class BiasedAlone(KaryRR):
    def invert_alone(self, counts):
        return SLIGHTLY * super().invert_alone(counts)


class WrongNull(KaryRR):
    def null_variances(self, frequencies):
        return super().null_variances(frequencies) * SLIGHTLY


class EqualOfNobody(KaryRR):
    def invert(self, counts):
        return np.where(counts.num_reports[:, np.newaxis] > 0, super().invert(counts), 1 / self.num_symbols)


class LittleEffect(KaryRR):
    @property
    def largest_effects(self):
        return super().largest_effects / SLIGHTLY


class LittleHarm(KaryRR):
    @property
    def smallest_effects(self):
        return super().smallest_effects / SLIGHTLY


class WrongOutcomes(KaryRR):
    def outcomes_of_reports(self, payloads, cohorts):
        outcomes = super().outcomes_of_reports(payloads, cohorts)
        return dataclasses.replace(outcomes, rows=outcomes.rows * SLIGHTLY)


class CountedTwice(KaryRR):
    def outcomes_of_reports(self, payloads, cohorts):
        outcomes = super().outcomes_of_reports(payloads, cohorts)
        return dataclasses.replace(outcomes, counts=2 * outcomes.counts)


class ClaimsReportsInClear(KaryRR):
    @property
    def sends_clear(self):
        return True


class OtherJson(KaryRR):
    def to_json(self):
        return super().to_json() | {"epsilon": 1.0}


FAULTS = [
    (WrongTail, "got a tail that accepts other payloads than violations does"),
    (SupportsAnother, "got counts that are not those of the supported symbols"),
    (WrongCovariance, "got a covariance that differs from that of the inverse"),
    (WrongSums, "got a variance_of sums that differs from that of the inverse"),
    (WrongContrasts, "got private_variances that differ from the covariance of the inverse"),
    (OneAtATime, "got a variances of several distributions that differs from that of each"),
    (BiasedAlone, "got a biased invert_alone"),
    (WrongNull, "got null_variances that differ from those of invert_alone"),
    (EqualOfNobody, "got an inverse of no reports that is not 0"),
    (LittleEffect, "got largest_effects that differ from those of the reports"),
    (LittleHarm, "got smallest_effects that differ from those of the reports"),
    (WrongOutcomes, "got outcomes of reports that are not proportional to the channel"),
    (CountedTwice, "got outcomes that do not count each report once"),
    (ClaimsReportsInClear, "got sends_clear = True, whereas no report has a single sender"),
    (OtherJson, "got a JSON form that makes another mechanism"),
    (LastIsWrong, "got reports of symbol 4 whose frequencies differ from the channel"),
    (TooOften, "got reports of symbol 0 whose frequencies differ from the channel"),
    (TooRarely, "got reports of symbol 0 whose frequencies differ from the channel"),
    (DrawsWords, r"got reports of uint16 \(4000, 1\) instead of uint8 \(4000, 1\)"),
    (DrawsOthers, "got the report 05 of symbol 0, which its channel excludes"),
    (CountsFloats, r"got counts that are not int64 of shape \(5, 5\)"),
    (CountsOneMore, r"got counts that are not int64 of shape \(5, 5\)"),
    (SlightlyMore, "got a response that differs from the expected counts"),
    (SlightlyBiased, "got a biased inverse"),
    (SlightlySure, "got variances that differ from those of the inverse"),
    (SlightlyLikelier, "got a log_prob that is not the logarithm of the channel"),
    (OneTooMany, "got 5 different payloads instead of num_outputs = 6"),
    (RaisingClient, "must not raise, got NotImplementedError: no draw"),
    (RaisingForm, "must not raise, got KeyError: 'half'"),
    (NoNoise, "got reports of symbol 0 whose frequencies differ from the channel"),
    (Unsupported, "got reports of symbol 0 whose frequencies differ from the channel"),
    (TooKeen, "got the ratio .* is above e"),
    (RarerTriples, r"got noise that supports the symbols \(0, 1, 2\) with probability 1/8, whereas triple_rate is 1/6"),
    (FixedSize, "got noise that supports a number of symbols other than support_size"),
    (Independent, "got noise for which independent_bits is not True"),
    (OfAnotherOrder, "got counts that are not those of the supported symbols"),
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


def test_what_nobody_sends_is_looked_for_in_two_bytes_too() -> None:
    [fault] = mechanism_checks._payloads(TakesAnything(num_symbols=300, num_sensitive=300, epsilon=1.0))
    assert fault == "no violations of payloads that no client can send"


def test_a_wrong_claim_of_independence_is_found_for_two_symbols() -> None:
    with pytest.raises(ConformanceError, match="got noise for which independent_bits is not True"):
        check_mechanism(Independent(num_symbols=2, num_sensitive=2, epsilon=0.5), generator("independence", 2))
    check_mechanism(UtilityOptimizedRR(num_symbols=2, num_sensitive=1, epsilon=0.5), generator("independence", 1))


def test_instances_of_a_class_have_two_to_six_symbols_and_epsilons_far_apart() -> None:
    found = {(case.num_symbols, case.num_sensitive) for case in mechanism_checks._small_instances(HadamardResponse)}
    assert found == {(2, 2), (3, 3), (5, 5)}
    instances = mechanism_checks._small_instances(UtilityOptimizedRR)
    assert {(case.num_symbols, case.num_sensitive) for case in instances} == {(2, 1), (3, 2), (3, 3), (6, 4)}
    assert {(case.epsilon, case.epsilon_inf) for case in instances} == {
        (1.0, None), (2.0**-10, None), (8.0, None), (2.0, 4.0)
    }  # fmt: skip


def test_instances_may_have_as_many_cells_as_can_be_enumerated() -> None:
    """512 outputs of 256 symbols; one output more is refused (``test_errors_ldp``)."""
    largest = SquareWave(num_symbols=256, num_sensitive=256, epsilon=1.0, half_width=128)
    assert mechanism_checks._small_instances(largest) == [largest]
    for refused in (Rappor(num_symbols=3, num_sensitive=3, num_hashes=2, epsilon=1.0), []):
        with pytest.raises(SpecError, match="check_mechanism needs instances with one hash function"):
            check_mechanism(refused)


@pytest.mark.parametrize(
    "mechanism",
    [
        SquareWave(num_symbols=7, num_sensitive=7, num_others=2, epsilon=1.0),
        UtilityOptimizedSquareWave(num_symbols=7, num_sensitive=4, num_others=1, epsilon=1.0),
        UtilityOptimizedRR(num_symbols=5, num_sensitive=3, epsilon=1.0),
    ],
)
def test_the_alphabet_is_one_for_which_the_mechanism_could_have_been_made(mechanism: Mechanism) -> None:
    alphabet = mechanism_checks._alphabet(mechanism)
    sizes = (alphabet.num_symbols, alphabet.num_sensitive, alphabet.num_others)
    assert sizes == (mechanism.num_symbols, mechanism.num_sensitive, mechanism.num_others)
    if mechanism.num_others:
        assert alphabet.bin_edges is not None
        assert alphabet.bin_edges.tolist() == list(range(mechanism.num_symbols - mechanism.num_others + 1))


def test_a_correct_mechanism_fails_as_rarely_as_is_said() -> None:
    """Each of two tails of 6 payloads and of the favoured ones together, under each of 3 symbols."""
    assert (mechanism_checks.FALSE_ALARM, mechanism_checks.DRAWS) == (1e-9, 4000)
    assert mechanism_checks._least_tail(6, 3) == pytest.approx(1e-9 / 42, rel=1e-12)
    found, expected = np.array([0.0, 1.0, 17.0, 4000.0]), np.array([0.001, 0.2, 0.004, 0.9])
    tails = mechanism_checks._upper_tail(found, expected)
    np.testing.assert_allclose(tails, stats.binom.sf(found - 1, 4000, expected), rtol=1e-9)


# ---------------------------------------------------------------------- faults of estimators


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changeable(Projected):
    """Shares that move with every call, by less than rounding."""

    calls: list[None] = dataclasses.field(default_factory=list, compare=False)

    def post_process(self, raw):
        self.calls.append(None)
        return super().post_process(raw) + 1e-14 * len(self.calls)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cut(PostProcessed):
    """Not a distribution: what is cut off at 0 is nowhere taken away."""

    id = "cut"

    def post_process(self, raw):
        return np.clip(raw, 0, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Below(Projected):
    """A distribution with a negative share."""

    def post_process(self, raw):
        shares = super().post_process(raw)
        last = shares[-1] + 0.01
        return np.append(np.append(shares[0] + last, shares[1:-1]), shares[-1] - last)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FavoursTheFirst(Projected):
    """A distribution in which the value that is named first gets what is below 0 from the largest one."""

    def post_process(self, raw):
        shares = super().post_process(raw)
        moved = min(-raw.clip(max=0).sum(), shares.max())
        return shares + moved * (np.eye(len(shares))[0] - np.eye(len(shares))[shares.argmax()])


def off_by(distance: float, kind: type[Decoder] = Decoder) -> type[Estimator]:
    """Distances to the truth, with very many reports: of an iterative estimator, or of a formula."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Off(kind):
        id = "off"

        def post_process(self, raw):
            return project_onto_simplex(raw) + distance * np.append([1, -1], np.zeros(len(raw) - 2))

        def decode(self, problem):
            return self.post_process(everybody(problem))

    return Off


def other(
    field: str, change: Callable[[Any], Any], on: Callable[[Any], bool] = lambda estimate: True
) -> type[Projected]:
    """An estimate with another field."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Other(Projected):
        def _assemble(self, *parts):
            estimate = super()._assemble(*parts)
            replaced = {field: change(getattr(estimate, field))}
            return dataclasses.replace(estimate, **replaced) if on(estimate) else estimate

    return Other


def is_small(estimate: Estimate) -> bool:
    return estimate.num_reports < 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfReports(Projected):
    """Half of the shares, if it sees the reports."""

    def estimate_reports(self, model, counts, batch, candidates=None):
        estimate = self.estimate(model, counts, candidates)
        return dataclasses.replace(estimate, frequencies=estimate.frequencies / 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sorted(Projected):
    def estimate(self, model, counts, candidates=None):
        return super().estimate(model, counts, candidates and tuple(sorted(candidates)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conditional(Projected):
    """Shares among those who hold a requested value."""

    def estimate(self, model, counts, candidates=None):
        estimate = super().estimate(model, counts, candidates)
        total = estimate.frequencies.sum()
        return dataclasses.replace(estimate, frequencies=estimate.frequencies / total, left_over=0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Forgets(Empirical):
    """Nothing is left over beside the requested values."""

    def _assemble(self, *parts):
        return dataclasses.replace(super()._assemble(*parts), left_over=0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeedsVersion(Projected):
    def estimate(self, model, counts, candidates=None):
        assert model.version > 0
        return super().estimate(model, counts, candidates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reversed(Projected):
    """Windows in another order."""

    def estimate_each(self, windows, candidates=None):
        return super().estimate_each([windows[1], windows[0], *windows[2:]], candidates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StopsAtNothing(Projected):
    """One window without reports refuses all."""

    def estimate_each(self, windows, candidates=None):
        return [self.estimate(*window, candidates) for window in windows if window[1].total]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shrinking(Projected):
    """Drawn towards equal shares, the less the more reports."""

    def decode(self, problem):
        shares = super().decode(problem)
        weight = 10 / (10 + problem.num_reports)
        return (1 - weight) * shares + weight / len(shares)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Warns(Projected):
    def post_process(self, raw):
        if (raw < 0).any():
            warnings.warn("a share below 0", stacklevel=1)
        return super().post_process(raw)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfNothing(Projected):
    def estimate(self, model, counts, candidates=None):
        one = CohortCounts(np.append(counts.num_reports[:-1], 1), counts.cells)
        return super().estimate(model, counts if counts.total else one, candidates)

    def estimate_each(self, windows, candidates=None):
        return Projected().estimate_each(windows, candidates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Jumps(Threshold):
    is_continuous = True


def narrow(low: float, high: float, above: float = 0.0) -> type[Projected]:
    """Intervals with other ends, of a confidence above this one."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Narrow(Projected):
        def _assemble(self, *parts):
            estimate = super()._assemble(*parts)

            def moved(confidence, strict=False):
                ends = estimate.intervals(confidence, strict)
                return (ends[0] + low, ends[1] + high) if np.max(confidence) > above else ends

            return dataclasses.replace(estimate, intervals=moved)

    return Narrow


def test_estimators_are_tried_with_every_mechanism_that_needs_no_fields() -> None:
    collections = {(one.alphabet.id, one.mechanism.id): one for one in estimator_checks._collections()}
    mechanisms = {"krr", "urr", "rappor", "urap", "ss", "uss", "hr", "uhr"}
    assert collections.keys() >= {(of, name) for of in ("closed", "hashed") for name in mechanisms}
    further = {of: MECHANISMS[name].protects_all for of, name in collections if of not in ("closed", "hashed")}
    assert further == {"permuted": True, "prefixes": True, "ordered": True, "tagged": False, "blocks": True}
    assert {of for of, _ in collections} == set(ALPHABETS)
    assert {(one.mechanism.epsilon, one.alphabet.num_sensitive) for one in collections.values()} >= {(2.0, 3), (2.0, 4)}
    hashed = collections["hashed", "krr"]
    assert (hashed.num_cohorts, hashed.alphabet) == (16, Hashed(num_buckets=4, seed=7))


COLLECTION = made({"id": "closed", "values": list(estimator_laws.VALUES)}, {"id": "krr", "epsilon": 2.0})


@pytest.mark.parametrize(
    ("distance", "kind", "right"),
    [
        (0.8e-4, Decoder, True),
        (1.2e-4, Decoder, False),
        (-1.2e-4, Decoder, False),
        (0.8e-9, PostProcessed, True),
        (1.2e-9, PostProcessed, False),
    ],
)
def test_very_many_reports_have_nearly_the_truth(distance: float, kind: type[Decoder], right: bool) -> None:
    """Within 1e-4, and within rounding where a formula maps the unbiased frequencies."""
    found = list(estimator_laws._of_truth(off_by(distance, kind)(), COLLECTION))
    assert [fault.startswith("frequencies that differ from the truth") for fault in found] == [True] * (not right)


INTERVALS = "intervals that differ from those of the linear estimate"
FAULTS_OF_ESTIMATORS = [
    (Cut, r"got frequencies that sum to (1\.\d+|0\.\d+) with those of other values instead of 1"),
    (Below, "got frequencies below 0"),
    (FavoursTheFirst, "got different frequencies for the same values in another order"),
    (other("left_over", lambda share: share * np.nan), "got a left_over that is not a finite number"),
    (other("left_over", lambda share: np.inf, is_small), "got a left_over that is not a finite number"),
    (other("left_over", lambda share: share + 0.01), r"got frequencies that sum to 1\.01 with those of other values"),
    (other("left_over", lambda share: share + 0.01, is_small), r"got frequencies that sum to 1\.01 with those"),
    (Changeable, "got different frequencies for a copy of the same counts"),
    (narrow(0.5, 0.0), "got intervals that do not contain the published frequencies"),
    (narrow(0.0, -0.5), "got intervals that do not contain the published frequencies"),
    (narrow(-1e-3, 0.0), f"got 95.0% {INTERVALS}"),
    (narrow(0.0, 1e-3), f"got 95.0% {INTERVALS}"),
    (narrow(0.0, 1e-3, above=0.99), f"got 99.9% {INTERVALS}"),
    (Uniform, "got frequencies that differ from the truth for"),
    (ClippedRaw, "got raw_frequencies that differ from those of the linear estimate"),
    (Certain, "got standard_errors that differ from those of the linear estimate"),
    (other("raw_unexplained_mass", lambda share: share + 1), "got raw_unexplained_mass that differs from that of the"),
    (other("unexplained_standard_error", lambda error: error + 1), "got unexplained_standard_error that differs from"),
    (other("unexplained_status", lambda status: "well"), "got unexplained_status that differs from that of the linear"),
    (other("fit_p_value", lambda p: 0.5), "got fit_p_value that differs from that of the linear estimate"),
    (Undefined, "got frequencies that are not 5 finite numbers"),
    (other("frequencies", lambda shares: shares[:-1], is_small), "got frequencies that are not 5 finite numbers"),
    (other("frequencies", lambda shares: shares * np.nan, is_small), "got frequencies that are not 5 finite numbers"),
    (OfReports, r"got frequencies that sum to 0\.5 with those of other values instead of 1"),
    (Stranger, "got an estimate that names 'other' and 3,000 reports"),
    (other("num_reports", lambda number: number + 1), "got an estimate that names 'projected' and 3,001 reports"),
    (Sorted, "got values other than those requested"),
    (other("values", lambda values: values[:1] * len(values)), "got values other than those requested"),
    (Conditional, "got frequencies of some values that differ from those in the estimate of all"),
    (Forgets, "got a left_over that is not the sum of the other frequencies"),
    (NeedsVersion, "must not raise, got AttributeError: 'Model' object has no attribute 'version'"),
    (Reversed, "got different frequencies together with other windows"),
    (StopsAtNothing, "got estimates of several windows that are not an estimate or an error each"),
    (Shrinking, "got different frequencies for twice as many equal reports"),
    (Warns, "must not raise, got UserWarning: a share below 0"),
    (OfNothing, "got an estimate without reports"),
    (Jumps, "got frequencies that jump, although is_continuous is True"),
    (SupportsNothing, "must support at least one of the collections, got none"),
    (Raising, "must not raise, got ZeroDivisionError: no shares"),
]


@pytest.mark.parametrize(
    ("cls", "sentence"), FAULTS_OF_ESTIMATORS, ids=[cls.__name__ for cls, _ in FAULTS_OF_ESTIMATORS]
)
def test_a_fault_of_an_estimator_is_found(cls: type[Estimator], sentence: str) -> None:
    with pytest.raises(ConformanceError, match=sentence):
        check_estimator(cls, rng=generator("faults", cls.__name__))


def test_intervals_may_end_at_the_published_frequencies() -> None:
    counts = COLLECTION.count(COLLECTION.perturb(list(estimator_laws.VALUES) * 20, generator("ends")))
    estimate = Projected().estimate(COLLECTION, counts, estimator_laws.VALUES)
    shown = np.array([np.clip(estimate.raw_frequencies, 0, 1), estimate.frequencies])
    ends = shown.min(axis=0), shown.max(axis=0)
    touching = dataclasses.replace(estimate, intervals=lambda confidence, strict=False: ends)
    assert list(estimator_laws._of_shares(touching)) == []
    assert np.isclose(estimator_laws.TRUTH.sum(), 1)
