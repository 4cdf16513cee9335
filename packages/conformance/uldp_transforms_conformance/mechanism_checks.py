"""Checks of small instances of a mechanism by complete enumeration of their reports.

Notation: K symbols, v of them sensitive, W payload bytes, Y payloads that a client can send.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets import Alphabet, Closed, Ordered
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import ConformanceError, SpecError
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.privacy import MAX_CELLS, audit
from uldp_transforms.ldp.sampling import WordSource, word_source
from uldp_transforms_conformance.enumeration import as_array, distributions, enumerated, single_counts
from uldp_transforms_conformance.moment_checks import (
    check_effects,
    check_json,
    check_moments,
    check_outcomes,
    check_single_symbols,
)

FALSE_ALARM = 1e-9
"""Maximum probability that a correct instance fails the checks of its drawn reports."""

DRAWS = 4_000
"""Number of reports drawn for each symbol."""

_SIZES = {True: ((2, 2), (3, 3), (5, 5)), False: ((2, 1), (3, 2), (3, 3), (6, 4))}
"""Sizes (K, v) of the tested instances of a class, by whether all symbols are protected."""

_EPSILONS = (1.0, 2.0**-10, 8.0)
_MEMO = {"epsilon": 2.0, "epsilon_inf": 4.0}
_ROUNDING, _EXACT_TO = 1e-9, 1e-12
_ENUMERABLE = 2  # maximum number of payload bytes that can be enumerated


def check_mechanism(
    tested: type[Mechanism] | Mechanism | Iterable[Mechanism], rng: np.random.Generator | WordSource | None = None
) -> None:
    """Enumerate the reports of small instances and compare them with the declared properties.

    The checks cover the exact channel (probabilities that sum to 1, epsilon, privacy loss of memos, ``sends_clear``),
    the structure of the noise, the accepted payloads, counts (additive, with the declared response), the inverse
    (unbiased, with the declared variances and covariances), the effects of one report, outcomes for likelihoods, the
    forms in JSON and for clients, and ``DRAWS`` reports that the client draws for each symbol.

    Example:
        >>> from uldp_transforms.ldp.mechanisms import KaryRR
        >>> check_mechanism(KaryRR(num_symbols=3, num_sensitive=3, epsilon=1.0))

    Args:
        tested: a class, whose instances with 2 to 6 symbols are tested; or an instance, or several of one class.
        rng: source of the client's words; None (default): the operating system's. A correct mechanism fails with
            probability at most ``FALSE_ALARM`` per instance.

    Raises:
        ConformanceError: if an instance has a fault; names the first one.
        SpecError: if instances are too large, or must be given because fields of the class have no default.
    """
    instances = _small_instances(tested)
    source = word_source(rng)
    for mechanism in instances:
        for check in _EXACT:
            _refuse(mechanism, lambda check=check, mechanism=mechanism: check(mechanism))  # type: ignore[misc]
        _refuse(mechanism, lambda mechanism=mechanism: _draws(mechanism, source))  # type: ignore[misc]
    _refuse(instances[0], lambda: _independence(instances))


def _small_instances(tested: type[Mechanism] | Mechanism | Iterable[Mechanism]) -> list[Mechanism]:
    if isinstance(tested, type):
        return _instances_of(tested)
    instances = [tested] if isinstance(tested, Mechanism) else list(tested)
    large = any(case.num_hashes > 1 or case.num_outputs * case.num_symbols > MAX_CELLS for case in instances)
    if large or not instances:
        raise SpecError(
            f"check_mechanism needs instances with one hash function and at most {MAX_CELLS} cells, got other instances"
        )
    return instances


def _instances_of(cls: type[Mechanism]) -> list[Mechanism]:
    needed = [f.name for f in cls.json_fields() if f.default is dataclasses.MISSING and f.name != "epsilon"]
    if needed:
        raise SpecError(f"check_mechanism needs instances if fields have no default, got a class with {needed}")
    fields: list[dict[str, Any]] = [{"epsilon": epsilon} for epsilon in _EPSILONS]
    fields += [_MEMO] if cls.takes("epsilon_inf") else []
    return [
        cls(num_symbols=num_symbols, num_sensitive=num_sensitive, **chosen)
        for (num_symbols, num_sensitive), chosen in itertools.product(_SIZES[cls.protects_all], fields)
    ]


def _refuse(mechanism: Mechanism, faults: Callable[[], Iterator[str]]) -> None:
    """Raise ConformanceError for the first fault; an exception of the mechanism is a fault."""
    try:
        fault = next(faults(), None)
    except Exception as error:
        raise ConformanceError(f"{mechanism!r} must not raise, got {type(error).__name__}: {error}") from error
    if fault is not None:
        raise ConformanceError(f"{mechanism!r} must behave as it declares, got {fault}")


# ---------------------------------------------------------------------- exact checks


def _privacy(mechanism: Mechanism) -> Iterator[str]:
    yield from audit(Collection(id="conformance", version=1, alphabet=_alphabet(mechanism), mechanism=mechanism)).faults
    reveals = any(sum(share > 0 for share in row) == 1 for row in mechanism.channel()[1])
    if reveals != mechanism.sends_clear:
        yield f"sends_clear = {mechanism.sends_clear}, whereas {'some' if reveals else 'no'} report has a single sender"


def _alphabet(mechanism: Mechanism) -> Alphabet:
    """One for which the mechanism could have been made."""
    names = {symbol: value for value, symbol in mechanism.named_symbols.items()}
    values = tuple(names.get(symbol, f"value {symbol}") for symbol in range(mechanism.num_symbols))
    everything = mechanism.num_sensitive == mechanism.num_symbols
    if mechanism.num_others:
        bins, others = mechanism.num_symbols - mechanism.num_others, values[-mechanism.num_others :]
        protected = (None, None if everything else mechanism.num_sensitive - mechanism.num_others)
        return Ordered(low=0, high=bins, num_bins=bins, others=others, sensitive=(protected, *others))
    return Closed(values=values, sensitive=None if everything else values[: mechanism.num_sensitive])


def _payloads(mechanism: Mechanism) -> Iterator[str]:
    payloads, width = mechanism.channel()[0], mechanism.payload_size
    if not len(payloads) == len(set(payloads)) == mechanism.num_outputs:
        yield f"{len(set(payloads))} different payloads instead of num_outputs = {mechanism.num_outputs}"
    if {len(payload) for payload in payloads} != {width}:
        yield f"payloads whose size is not payload_size = {width} bytes"
        return
    if not mechanism.is_valid(as_array(payloads)).all():
        yield "violations of payloads that a client can send"
    if width <= _ENUMERABLE:
        everything = as_array([bytes(payload) for payload in itertools.product(range(256), repeat=width)])
        if int(mechanism.is_valid(everything).sum()) != len(payloads):
            yield "no violations of payloads that no client can send"


def _definition(mechanism: Mechanism) -> Iterator[str]:
    codes, probabilities = enumerated(mechanism)
    with np.errstate(divide="ignore"):
        if not np.allclose(mechanism.log_prob(codes), np.log(probabilities), rtol=_ROUNDING, atol=_ROUNDING):
            yield "a log_prob that is not the logarithm of the channel"


def _structure(mechanism: Mechanism) -> Iterator[str]:
    """Rates of each symbol, pair and triple must be constant, as the variances assume."""
    if not isinstance(mechanism, SetReportMechanism):
        return
    law, phi = _law_of_supports(mechanism), mechanism.noise_rate
    for size, rate, name in (
        (1, phi, "noise_rate"),
        (2, phi * mechanism.pair_rate, "pair_rate"),
        (3, phi * mechanism.triple_rate, "triple_rate"),
    ):
        for chosen in itertools.combinations(range(mechanism.num_sensitive), size):
            found = sum((share for support, share in law.items() if support.issuperset(chosen)), Fraction(0))
            if found != rate:
                yield f"noise that supports the symbols {chosen} with probability {found}, whereas {name} is {rate}"
                return
    sizes = {len(support) for support in law}
    if mechanism.support_size != (sizes.pop() if len(sizes) == 1 else None):
        yield "noise that supports a number of symbols other than support_size"


def _counts(mechanism: Mechanism) -> Iterator[str]:
    codes, probabilities = enumerated(mechanism)
    size, shares = len(codes), distributions(mechanism.num_symbols)
    cells = mechanism.count(codes, np.arange(size), size)
    if cells.dtype != np.int64 or cells.shape != (size, mechanism.num_cells):
        yield f"counts that are not int64 of shape {(size, mechanism.num_cells)}"
        return
    twice, groups = np.repeat(np.arange(size), 2), np.arange(2 * size) % 3 % 2
    together = np.stack([cells[twice][groups == group].sum(axis=0) for group in (0, 1)])
    if not np.array_equal(mechanism.count(codes[twice], groups, 2), together):
        yield "counts of several reports that are not the sum of their counts"
    if not np.allclose(mechanism.response(shares), shares @ probabilities.T @ cells, rtol=0, atol=_EXACT_TO):
        yield "a response that differs from the expected counts"
    for rule, lacking in mechanism.count_violations(CohortCounts(np.ones(size, dtype=np.int64), cells)):
        if lacking.any():
            yield f"counts of valid payloads without {rule}"


def _inverse(mechanism: Mechanism) -> Iterator[str]:
    codes, probabilities = enumerated(mechanism)
    shares, inverse = distributions(mechanism.num_symbols), mechanism.invert(single_counts(mechanism, codes))
    largest = float(abs(inverse).max())
    if not np.allclose(probabilities.T @ inverse, np.eye(mechanism.num_symbols), rtol=0, atol=_EXACT_TO * largest):
        yield "a biased inverse"
    variances = shares @ probabilities.T @ inverse**2 - shares**2
    if not np.allclose(mechanism.variances(shares), variances, rtol=_ROUNDING, atol=_EXACT_TO * largest**2):
        yield "variances that differ from those of the inverse"


def _client_form(mechanism: Mechanism) -> Iterator[str]:
    sampler, layout = mechanism.client_sampler, mechanism.client_payload
    if json.loads(json.dumps(sampler)) != sampler or not isinstance(sampler.get("sampler"), str):
        yield "a client_sampler that is not a JSON object with the name of a sampler"
    if layout["bytes"] != mechanism.payload_size:
        yield "a client_payload whose size is not payload_size"
    if not all(map(_are_integers_or_texts, mechanism.exact_weights.values())):
        yield "exact_weights that are neither integers nor texts"


def _are_integers_or_texts(weight: object) -> bool:
    """Whether a weight is an integer, a text or a truth value, or a list or an object of them."""
    parts = weight.values() if isinstance(weight, dict) else weight if isinstance(weight, list) else None
    return type(weight) in (int, str, bool) if parts is None else all(map(_are_integers_or_texts, parts))


def _tail(mechanism: Mechanism) -> Iterator[str]:
    """A declared tail must accept exactly the valid payloads."""
    (tail, limit), width = mechanism.tail, mechanism.payload_size
    if not tail or width > _ENUMERABLE:
        return
    everything = as_array([bytes(payload) for payload in itertools.product(range(256), repeat=width)])
    accepted = everything[:, width - tail :] @ 256 ** np.arange(tail) < limit
    if not np.array_equal(accepted, mechanism.is_valid(everything)):
        yield "a tail that accepts other payloads than violations does"


def _supports(mechanism: Mechanism) -> Iterator[str]:
    """The first counts of a set report are the symbols that it supports."""
    if isinstance(mechanism, SetReportMechanism):
        codes, size = enumerated(mechanism)[0], mechanism.num_symbols
        counted = mechanism.count(codes, np.arange(len(codes)), len(codes))[:, :size]
        if not np.array_equal(counted, mechanism.supports(codes)):
            yield "counts that are not those of the supported symbols"


_EXACT = (
    *(_privacy, _payloads, _tail, _supports, _definition, _structure, _counts, _inverse, _client_form),
    *(check_single_symbols, check_moments, check_effects, check_outcomes, check_json),
)


def _independence(instances: list[Mechanism]) -> Iterator[str]:
    """Faults in the declared independence, which holds for all instances of a class; one symbol alone shows nothing."""
    family = [case for case in instances if isinstance(case, SetReportMechanism)]
    if not any(case.num_sensitive > 1 for case in family):
        return
    if family[0].independent_bits != all(map(_has_independent_bits, family)):
        yield f"noise for which independent_bits is not {family[0].independent_bits}"


# ---------------------------------------------------------------------- the client


def _draws(mechanism: Mechanism, source: WordSource) -> Iterator[str]:
    """The frequencies of drawn payloads, and of all payloads that favour a symbol, must match the channel."""
    payloads, rows = mechanism.channel()
    place = {payload: i for i, payload in enumerate(payloads)}
    probabilities = np.array([[float(share) for share in row] for row in rows])
    favoured = (probabilities > probabilities.mean(axis=1, keepdims=True)).T
    least = _least_tail(len(payloads), mechanism.num_symbols)
    for symbol in range(mechanism.num_symbols):
        drawn = mechanism.perturb(np.full(DRAWS, symbol, dtype=np.int64), source)
        if drawn.dtype != np.uint8 or drawn.shape != (DRAWS, mechanism.payload_size):
            yield f"reports of {drawn.dtype} {drawn.shape} instead of uint8 {(DRAWS, mechanism.payload_size)}"
            return
        kinds, numbers = np.unique(drawn, axis=0, return_counts=True)
        found = np.zeros(len(payloads))
        for kind, number in zip(kinds, numbers):
            if kind.tobytes() not in place:
                yield f"the report {kind.tobytes().hex()} of symbol {symbol}, which its channel excludes"
                return
            found[place[kind.tobytes()]] = number
        found = np.append(found, found[favoured[symbol]].sum())
        expected = np.append(probabilities[:, symbol], probabilities[favoured[symbol], symbol].sum())
        tails = np.minimum(special.bdtr(found, DRAWS, expected), _upper_tail(found, expected))
        if tails.min() < least:
            yield f"reports of symbol {symbol} whose frequencies differ from the channel"
            return


def _least_tail(num_payloads: int, num_symbols: int) -> float:
    """``FALSE_ALARM``, divided by all tails: two for each payload and for the favoured ones, under each symbol."""
    return FALSE_ALARM / (2 * (num_payloads + 1) * num_symbols)


def _upper_tail(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Pr(X >= found) for binomial variables."""
    tail: np.ndarray = np.where(found > 0, special.bdtrc(np.maximum(found - 1, 0), DRAWS, expected), 1.0)
    return tail


# ---------------------------------------------------------------------- enumeration


def _law_of_supports(mechanism: SetReportMechanism) -> dict[frozenset[int], Fraction]:
    """The probability of each set of supported symbols under noise."""
    law: Counter[frozenset[int]] = Counter()
    for _, probability, support in mechanism.noise_law():
        law[support] += probability  # type: ignore[assignment]  # of fractions
    return dict(law)  # type: ignore[arg-type]


def _has_independent_bits(mechanism: SetReportMechanism) -> bool:
    """Whether every set of symbols has the probability that independent coins give."""
    phi, v = mechanism.noise_rate, mechanism.num_sensitive
    return all(
        share == phi ** len(support) * (1 - phi) ** (v - len(support))
        for support, share in _law_of_supports(mechanism).items()
    )
