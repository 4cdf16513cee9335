"""Exact audit of the privacy loss of a collection's reports, in rational numbers.

The audit neither samples nor rounds. Small instances are enumerated completely, every report under every symbol; for
large ones every kind of report is enumerated, because the rest of its probability cancels in ratios. The bound is a
rational number below e**epsilon, so a collection that passes satisfies its epsilon exactly.
"""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import Guarantee
from uldp_transforms.ldp.sampling import WORD, exp_bounds

MAX_CELLS = 1 << 17
"""Maximum number of reports times symbols for full enumeration."""

MAX_SEQUENCE_CELLS = 1 << 15
"""Maximum number of sequences times memos times symbols for enumeration of all sequences."""

LIFETIMES = (1, 2, 3, 7, 30, 365)
"""Numbers of reports of one person for which the loss is computed."""

LDP, ULDP, STATES = "every value", "every sensitive value", "every declared state"


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorstPair:
    """The report with the largest privacy loss, and the two inputs that it distinguishes.

    Attributes:
        report: the payload in hexadecimal digits, or a description of the kind of report.
        likelier, less_likely: descriptions of the two inputs.
        probabilities: exact probabilities of the report under each input, for a kind of report up to a common factor.
    """

    report: str
    likelier: str
    less_likely: str
    probabilities: tuple[Fraction, Fraction]

    @property
    def ratio(self) -> Fraction | float:
        """Ratio of the two probabilities; infinite if the less likely input never produces the report."""
        likelier, less_likely = self.probabilities
        return likelier / less_likely if less_likely else math.inf


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """Result of the audit of a collection.

    Attributes:
        epsilon: the declared epsilon.
        protects: description of the protected inputs.
        method: description of the enumeration.
        worst: the worst pair.
        faults: violations of the declared guarantee, one sentence each; empty if it holds.
        notes: limits of the guarantee that are relevant for this collection.
        levels: each guarantee with its worst pair, the first ones protecting most; one unless there are levels.
        lifetime: audit of all reports of one symbol together; None if every report is drawn anew.
    """

    epsilon: float
    protects: str
    method: str
    worst: WorstPair
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    levels: tuple[AuditedLevel, ...] = ()
    lifetime: Lifetime | None = None

    @property
    def effective_epsilon(self) -> decimal.Decimal:
        """ln of the worst ratio, to 30 digits."""
        return _logarithm(self.worst.ratio)


class AuditedLevel(NamedTuple):
    """A guarantee and the worst pair of the reports that it covers."""

    guarantee: Guarantee
    worst: WorstPair

    @property
    def effective_epsilon(self) -> decimal.Decimal:
        """ln of the worst ratio, to 30 digits."""
        return _logarithm(self.worst.ratio)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lifetime:
    """Result of the audit of all reports of one symbol together, for clients with memos.

    Attributes:
        epsilon_inf: the declared epsilon of all reports together.
        method: description of the enumeration.
        worst: worst pair for the memo, from which all reports are made without using the value again.
        after: number of reports -> ln of the worst ratio for that number of reports together.
    """

    epsilon_inf: float
    method: str
    worst: WorstPair
    after: dict[int, float]

    @property
    def effective_epsilon(self) -> decimal.Decimal:
        """ln of the worst ratio, to 30 digits."""
        return _logarithm(self.worst.ratio)


def _logarithm(ratio: Fraction | float) -> decimal.Decimal:
    if isinstance(ratio, float):
        return decimal.Decimal(ratio).ln()
    context = decimal.Context(prec=60)
    quotient = context.divide(decimal.Decimal(ratio.numerator), decimal.Decimal(ratio.denominator))
    return context.quantize(context.ln(quotient), decimal.Decimal(10) ** -30)


def audit(collection: Collection) -> Audit:
    """Prove or refute the epsilon of a collection.

    Returns:
        The result; ``faults`` is empty if and only if the guarantee holds.

    Source: Murakami and Kawamoto 2019, Definition 2 (ULDP); Kairouz, Bonawitz and Ramage 2016, section 2 (LDP).
    """
    mechanism = collection.mechanism
    levels, method, faults = _proved(mechanism, mechanism.guarantees, "epsilon")
    lifetime = None
    if isinstance(mechanism, SetReportMechanism) and mechanism.epsilon_inf is not None:
        lifetime, more = _lifetime(mechanism, mechanism.epsilon_inf)
        faults.extend(more)
    faults.extend(_misplaced(collection))
    states = mechanism.protected_inputs is not None
    everything = mechanism.num_sensitive == mechanism.num_symbols
    within = " among those of its block" if len(mechanism.confusable) > 1 else ""
    return Audit(
        epsilon=mechanism.epsilon,
        protects=STATES if states else (LDP if everything else ULDP) + within,
        method=method,
        worst=_largest(level.worst for level in levels),
        faults=tuple(faults),
        notes=(*collection.alphabet.caveats, *mechanism.caveats),
        levels=tuple(levels),
        lifetime=lifetime,
    )


def _proved(
    mechanism: Mechanism, guarantees: Sequence[Guarantee], name: str
) -> tuple[list[AuditedLevel], str, list[str]]:
    """The worst pair of each guarantee, the method, and the violations; an infinite epsilon has none."""
    if math.isinf(guarantees[0].epsilon):
        method = f"every one of the {mechanism.num_outputs} reports, in exact fractions of 2**64"
        return _by_kind(mechanism, guarantees), method, []
    if mechanism.num_hashes == 1 and mechanism.num_outputs * mechanism.num_symbols <= MAX_CELLS:
        levels, faults = _enumerate(mechanism, guarantees)
        method = (
            f"all {mechanism.num_outputs} reports under each of {mechanism.num_symbols} symbols, enumerated in exact "
            f"fractions of 2**64"
        )
    else:
        levels, faults = _by_kind(mechanism, guarantees), []
        method = (
            f"every kind of the {_in_words(mechanism.num_outputs)} reports, in exact fractions of 2**64 "
            "(the differences between reports of one kind cancel)"
        )
    for guarantee, worst in levels:
        bound, where = exp_bounds(guarantee.epsilon)[0], "" if len(levels) == 1 else f" of {guarantee.of}"
        if worst.ratio > bound:
            faults.append(f"the ratio{where} {float(worst.ratio):.17g} is above e**{name} = {float(bound):.17g}")
        if worst.ratio != guarantee.exact_ratio:
            faults.append(f"the worst ratio{where} differs from the one that the mechanism claims")
    return levels, method, faults


def _lifetime(mechanism: SetReportMechanism, epsilon_inf: float) -> tuple[Lifetime, list[str]]:
    """The audit of the memo, which bounds all reports; and of sequences of reports, where these are few."""
    of_memo = [guarantee._replace(epsilon=epsilon_inf) for guarantee in mechanism.memo.guarantees]
    (level,), method, faults = _proved(mechanism.memo, of_memo, "epsilon_inf")
    faults = [f"memos: {fault}" for fault in faults]
    method = method.replace("reports", "memos")
    enumerated = []
    for number in (2, 3):
        sequences = math.comb(mechanism.num_outputs + number - 1, number)
        if sequences * mechanism.num_outputs * mechanism.num_symbols <= MAX_SEQUENCE_CELLS:
            enumerated.append(number)
            if _worst_of_several(mechanism, number) != mechanism.ratio_after(number):
                faults.append(f"the worst ratio of {number} reports differs from the one that the mechanism claims")
    if enumerated:
        method += f"; all sequences of up to {enumerated[-1]} reports"
    after = {number: mechanism.epsilon_after(number) for number in LIFETIMES}
    return Lifetime(epsilon_inf=epsilon_inf, method=method, worst=level.worst, after=after), faults


def _worst_of_several(mechanism: SetReportMechanism, number: int) -> Fraction:
    """The largest ratio of the probabilities of ``number`` protected reports of one person with a constant symbol.

    The maximum is over all multisets of reports; each probability is a sum over all possible memos.
    """
    payloads, rows = mechanism.memo.channel()
    noise = {payload: share for payload, share, _ in mechanism.noise_law()}
    repeat = Fraction(mechanism.repeat_weight, WORD)
    fresh = [(1 - repeat) * noise.get(payload, Fraction(0)) for payload in payloads]
    worst = Fraction(1)
    for reports in itertools.combinations_with_replacement(range(len(payloads)), number):
        of_memo = [
            math.prod((fresh[report] + repeat * (report == memo) for report in reports), start=Fraction(1))
            for memo in range(len(payloads))
        ]
        shares = [sum((p * q for p, q in zip(of_memo, column) if p), Fraction(0)) for column in zip(*rows)]
        if all(shares):  # otherwise the sequence contains a clear report
            worst = max(worst, max(shares) / min(shares))
    return worst


def _enumerate(mechanism: Mechanism, guarantees: Sequence[Guarantee]) -> tuple[list[AuditedLevel], list[str]]:
    """The worst pair of each guarantee, and all other faults of the channel."""
    payloads, rows = mechanism.channel()
    faults = []
    if any(sum(column) != 1 for column in zip(*rows)):
        faults.append("the probabilities of the reports of a symbol do not sum to 1")
    groups = mechanism.protected_inputs
    if groups is not None:
        nouns = ("answer", "state") if mechanism.last_is_missing else ("state",)  # as ``protected_inputs`` lists them
        return [AuditedLevel(guarantees[0], _worst_of(payloads, rows, groups, nouns, faults))], faults
    symbols, levels, left = list(range(mechanism.num_symbols)), [], dict(zip(payloads, rows))
    for guarantee in guarantees:
        own = {payload: row for payload, row in left.items() if any(row[symbol] for symbol in guarantee.symbols)}
        left = {payload: row for payload, row in left.items() if payload not in own}
        pairs = []
        for payload, row in own.items():
            senders = [symbol for symbol in symbols if row[symbol]]
            group = next((group for group in mechanism.confusable if senders[0] in group), ())
            if senders != [symbol for symbol in symbols if symbol in group]:
                faults.append(f"report {payload.hex()} can come from a sensitive symbol and rules another symbol out")
            else:
                high, low = (extreme(senders, key=row.__getitem__) for extreme in (max, min))
                pairs.append(_pair(payload, "symbol", (high, low), (row[high], row[low])))
        levels.append(AuditedLevel(guarantee, _largest(pairs)))
        symbols = [symbol for symbol in symbols if symbol not in guarantee.symbols]
    for payload, row in left.items():
        number = sum(probability > 0 for probability in row)
        if number != 1:
            faults.append(f"the clear report {payload.hex()} comes from {number} symbols instead of one")
    return levels, faults


def _pair(payload: bytes, noun: str, inputs: tuple[int, int], probabilities: tuple[Fraction, Fraction]) -> WorstPair:
    high, low = inputs
    return WorstPair(
        report=payload.hex(),
        likelier=f"{noun} {high}",
        less_likely=f"{noun} {low}",
        probabilities=(Fraction(probabilities[0]), Fraction(probabilities[1])),
    )


def _largest(pairs: Iterable[WorstPair]) -> WorstPair:
    return max(pairs, key=lambda pair: pair.ratio)


def _worst_of(
    payloads: list[bytes],
    rows: list[list[Fraction]],
    groups: list[list[list[Fraction]]],
    nouns: tuple[str, ...],
    faults: list[str],
) -> WorstPair:
    """The two inputs of one group and the report with the largest ratio of probabilities.

    A report that has probability 0 under an input is added to the faults.
    """
    best: WorstPair | None = None
    for payload, row in zip(payloads, rows):
        for noun, group in zip(nouns, groups):
            shares = [sum((p * q for p, q in zip(weights, row) if p), Fraction(0)) for weights in group]
            high, low = (shares.index(extreme(shares)) for extreme in (max, min))
            if not shares[low]:
                if shares[high]:
                    faults.append(f"report {payload.hex()} rules {noun} {low} out")
                continue
            pair = _pair(payload, noun, (high, low), (shares[high], shares[low]))
            if best is None or pair.ratio > best.ratio:
                best = pair
    assert best is not None, "a mechanism has protected reports"
    return best


def _by_kind(mechanism: Mechanism, guarantees: Sequence[Guarantee]) -> list[AuditedLevel]:
    """The worst of the kinds of reports of each guarantee, computed from the client's integer weights."""
    pairs: list[list[WorstPair]] = [[] for _ in guarantees]
    for kind in mechanism.kinds():
        (one, other), (p, q) = kind.inputs, kind.probabilities
        ordered = (one, other, (p, q)) if p >= q else (other, one, (q, p))
        pairs[kind.guarantee].append(
            WorstPair(report=kind.report, likelier=ordered[0], less_likely=ordered[1], probabilities=ordered[2])
        )
    return list(map(AuditedLevel, guarantees, map(_largest, pairs)))


def _misplaced(collection: Collection) -> list[str]:
    """Faults in the symbols: public values must have clear symbols in every cohort, and all others must not."""
    values = collection.alphabet.clear_values
    if not values or collection.mechanism.protects_all:
        return []
    table = collection.alphabet.symbol_table(values, collection.num_cohorts)
    wrong = int(np.count_nonzero((table < collection.alphabet.num_sensitive).any(axis=0)))
    return [f"{wrong} public values share symbols with sensitive ones"] if wrong else []


def _in_words(number: int) -> str:
    return f"{number}" if number < 10**9 else f"more than 10**{int((number.bit_length() - 1) * math.log10(2))}"
