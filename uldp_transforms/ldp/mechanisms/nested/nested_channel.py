"""Channel of nested levels: values of each level have an epsilon of their own, and all other values are sent in clear.

Level l has v_l values and a mechanism of the set-report family with epsilon_l over them, for which the values of all
later levels, and those without a level, are not sensitive. A report of level 1 is noise with probability 1 - kappa_1,
whoever reports; a value of level 1 always sends a report of level 1; every other value passes to level 2 with
probability kappa_1, and so on. A value that passes all levels is sent in clear. So, with t_l the product of the kappa
of the levels before l,

    Pr(report of level l | value) = t_l Pr_l(report | value), and 0 if the value has an earlier level.

Reports of level l change the odds of any two values of level l or later, or none, by at most e**epsilon_l, and rule
earlier levels out, as a clear report rules all protected values out. Murakami and Kawamoto 2019, section 3.1, leave
such levels as future work; with one level it is their definition 2.

Notation: n reports, L levels, K symbols, v of them protected, W payload bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from uldp_transforms.ldp.checks import describe, is_number, require_keys, require_mapping, require_number, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON, Guarantee, Kind, Mechanism
from uldp_transforms.ldp.mechanisms.nested.level_payloads import LevelPayloads, payloads_of
from uldp_transforms.ldp.mechanisms.randomized_response import UtilityOptimizedRR
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism
from uldp_transforms.ldp.mechanisms.subset_selection import UtilityOptimizedSubsetSelection
from uldp_transforms.ldp.mechanisms.unary import UtilityOptimizedRappor
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WordSource

FAMILY: dict[str, type[SetReportMechanism]] = {
    cls.id: cls for cls in (UtilityOptimizedRR, UtilityOptimizedSubsetSelection, UtilityOptimizedRappor)
}
"""The mechanisms that levels can be made of."""

SymbolsOf = Callable[[tuple[str, ...]], Sequence[int | None]]
"""The symbol of each value that a level can have; None for other values."""


class Level(NamedTuple):
    """Values with one epsilon.

    Attributes:
        epsilon: in (0, 16].
        values: canonical; None, in the first level only: all protected values that no other level has.
    """

    epsilon: float
    values: tuple[str, ...] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedChannel(Mechanism):
    """The client's half of nested levels; see the module.

    Attributes:
        levels: at least two, the epsilon of each larger than that of the one before; together they have every
            sensitive value of the alphabet. Over hashed texts the first level has no list: it has all texts that are
            not listed, and the others have the first texts of the public list.
        of: the mechanism of each level: ``urr``, ``uss`` or ``urap``. The set sizes of ``uss`` are those with the least
            sum of variances.
        symbols_of: from the alphabet. None: the values have the symbols 0, 1, ... in their order, or the last of the v
            if the first level has no list.
        level_symbols: for each level the symbols of its values.
    """

    names_values: ClassVar[bool] = True
    alike_in_blocks: ClassVar[bool] = False

    epsilon: float = dataclasses.field(init=False, default=math.inf)
    levels: tuple[Level, ...] = dataclasses.field(
        metadata={
            "schema": {
                "description": "Levels of values, each with a larger epsilon than the one before; together they have "
                "every sensitive value. Over hashed texts the first has no values: it has all unlisted texts.",
                "type": "array",
                "minItems": 2,
                "items": {
                    "type": "object",
                    "required": ["epsilon"],
                    "additionalProperties": False,
                    "properties": {
                        "epsilon": {"type": "number", "exclusiveMinimum": 0, "maximum": int(MAX_EPSILON)},
                        "values": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
                    },
                },
            }
        }
    )
    of: str = dataclasses.field(
        default=UtilityOptimizedSubsetSelection.id,
        metadata={"schema": {"description": "The mechanism of each level.", "enum": list(FAMILY)}},
    )
    symbols_of: SymbolsOf | None = dataclasses.field(default=None, repr=False, compare=False)
    level_symbols: tuple[tuple[int, ...], ...] = dataclasses.field(init=False, repr=False)

    # ------------------------------------------------------------------ the fields

    def check_epsilon(self) -> None:
        """Do nothing: the levels determine epsilon; see ``check_own_fields``."""

    def check_own_fields(self) -> None:
        name = type(self).__name__
        if not isinstance(self.of, str) or self.of not in FAMILY:
            raise SpecError(f"{name}.of must be one of {', '.join(FAMILY)}, got {describe(self.of)}")
        levels = checked_levels(f"{name}.levels", self.levels)
        symbols = self._placed(f"{name}.levels", levels)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "epsilon", levels[-1].epsilon)
        object.__setattr__(self, "level_symbols", symbols)
        object.__setattr__(self, "num_sensitive", sum(map(len, symbols)))
        if len(symbols[-1]) == 1 and self.num_sensitive == self.num_symbols:
            raise SpecError(f"{name}.levels must have two values in the last level if none is sent in clear, got one")
        try:
            _ = self.members
        except SpecError:
            raise SpecError(self.no_signal) from None

    @property
    def no_signal(self) -> str:
        where, epsilon = f"{type(self).__name__}.levels", f"{self.levels[0].epsilon:g}"
        return f"{where} must have epsilons with a signal in 64-bit weights, got {epsilon}"

    def _placed(self, where: str, levels: Sequence[Level]) -> tuple[tuple[int, ...], ...]:
        """The symbols of each level."""
        named = tuple(value for level in levels for value in level.values or ())
        first = 0 if levels[0].values else max(self.num_sensitive - len(named), 0)
        symbols = range(first, first + len(named)) if self.symbols_of is None else self.symbols_of(named)
        for value, symbol in zip(named, symbols):
            if symbol is None or symbol >= self.num_symbols:
                raise SpecError(
                    f"{where} must have values that are sensitive (bins as in rows, such as '[2, 4)'), or on the "
                    f"public list of hashed texts, and that share no bucket with other values, got {describe(value)}"
                )
        place = dict(zip(named, symbols))
        protected = max(self.num_sensitive, 1 + max(place.values()))  # type: ignore[type-var, operator]
        others = tuple(sorted(set(range(protected)).difference(place.values())))
        if levels[0].values and others:
            raise SpecError(
                f"{where} must have a level for every sensitive value (of hashed texts a first one without a list), "
                f"got none for {len(others)}"
            )
        if not levels[0].values and not others:
            raise SpecError(f"{where}[0] must have values, got no list and no value that has no other level")
        if others and protected > self.num_sensitive and others != tuple(range(self.num_sensitive)):
            raise SpecError(f"{where} must have the first texts of the public list, got later ones without these")
        return tuple(tuple(place[value] for value in level.values) if level.values else others for level in levels)  # type: ignore[misc]

    def to_json(self) -> dict[str, Any]:
        levels = [
            {"epsilon": level.epsilon} | ({} if level.values is None else {"values": list(level.values)})
            for level in self.levels
        ]
        return {"id": self.id, "levels": levels, "of": self.of}

    @property
    def named_symbols(self) -> Mapping[str, int]:
        return {
            value: symbol
            for level, symbols in zip(self.levels, self.level_symbols)
            for value, symbol in zip(level.values or (), symbols)
        }

    # ------------------------------------------------------------------ the definition

    @functools.cached_property
    def members(self) -> tuple[SetReportMechanism, ...]:
        """The mechanism of each level; its symbols are the values of the level, then all later symbols."""
        cls, numbers = FAMILY[self.of], list(map(len, self.level_symbols))
        sizes = best_sizes(numbers, [level.epsilon for level in self.levels], self.num_symbols > sum(numbers))
        return tuple(
            cls(
                num_symbols=self.num_symbols - sum(numbers[:place]),
                num_sensitive=numbers[place],
                epsilon=level.epsilon,
                **({"subset_size": sizes[place]} if cls.takes("subset_size") else {}),
            )
            for place, level in enumerate(self.levels)
        )

    @functools.cached_property
    def payloads(self) -> LevelPayloads:
        """The form of payloads."""
        return payloads_of(self.members, self.level_symbols, self.num_symbols)

    @functools.cached_property
    def order(self) -> np.ndarray:
        """(K,) int64: the symbols level by level, then those without a level."""
        clear = range(self.num_sensitive, self.num_symbols)
        return np.array([*(symbol for symbols in self.level_symbols for symbol in symbols), *clear])

    @functools.cached_property
    def starts(self) -> list[int]:
        """Place in ``order`` of the first symbol of each level, and of those without a level."""
        return list(itertools.accumulate(map(len, self.level_symbols), initial=0))

    @functools.cached_property
    def _exact_passing(self) -> list[Fraction]:
        """t_1, ..., t_(L+1)."""
        passing = [Fraction(1)]
        for member in self.members:
            passing.append(passing[-1] * member.informative)
        return passing

    @functools.cached_property
    def passing(self) -> list[float]:
        """Probability that a value reaches each level, if it has no earlier one; and that it is sent in clear."""
        return list(map(float, self._exact_passing))

    @property
    def has_signal(self) -> bool:
        return self.passing[-1] > 0

    @property
    def exact_ratio(self) -> Fraction:
        return max(member.exact_ratio for member in self.members)

    @property
    def effective_epsilon(self) -> float:
        return math.log(self.exact_ratio)

    @property
    def guarantees(self) -> list[Guarantee]:
        """Of each level, for its own values and all later ones."""
        return [
            Guarantee(f"level {place + 1}", level.epsilon, symbols, member.exact_ratio)
            for place, (level, symbols, member) in enumerate(zip(self.levels, self.level_symbols, self.members))
        ]

    def kinds(self) -> Iterator[Kind]:
        for place, member in enumerate(self.members):
            for kind in member.kinds():
                yield Kind(f"level {place + 1}: {kind.report}", kind.inputs, kind.probabilities, place)

    @property
    def caveats(self) -> list[str]:
        return [*super().caveats, "A report of a level reveals that its value has that level or a later one, or none."]

    @property
    def num_outputs(self) -> int:
        return self.payloads.num_outputs

    @property
    def exact_weights(self) -> dict[str, Any]:
        return {"epsilon": repr(self.epsilon), "num_sensitive": self.num_sensitive, "members": self._samplers}

    @property
    def client_sampler(self) -> dict[str, Any]:
        return {"sampler": "nested", "members": self._samplers}

    @property
    def _samplers(self) -> list[dict[str, Any]]:
        """The sampler of each level, with the symbols of its values; keys are sorted."""
        return [
            dict(sorted(({"symbols": list(symbols)} | member.client_sampler).items()))
            for symbols, member in zip(self.level_symbols, self.members)
        ]

    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        payloads, rows = [], []
        for place, (member, passing) in enumerate(zip(self.members, self._exact_passing)):
            for drawn, probabilities in zip(*member.channel()):
                code = np.frombuffer(drawn, dtype=np.uint8)[np.newaxis]
                if not self.payloads.passes(place, code)[0]:
                    payloads.append(self.payloads.sealed(place, code).tobytes())
                    row = [Fraction(0)] * self.num_symbols
                    for symbol, probability in zip(self.order[self.starts[place] :].tolist(), probabilities):
                        row[symbol] = passing * probability
                    rows.append(row)
        for symbol in range(self.num_sensitive, self.num_symbols):
            payloads.append(self.payloads.clear(np.array([symbol])).tobytes())
            rows.append([self._exact_passing[-1] * (other == symbol) for other in range(self.num_symbols)])
        return payloads, rows

    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        found, levels = np.full((len(payloads), self.num_symbols), -np.inf), self.payloads.levels(payloads)
        for place, (member, passing) in enumerate(zip(self.members, self.passing)):
            rows = np.flatnonzero(levels == place)
            inner = member.log_prob(self.payloads.opened(place, payloads[rows]))
            found[np.ix_(rows, self.order[self.starts[place] :])] = math.log(passing) + inner
        rows = np.flatnonzero(levels == len(self.members))
        found[rows, self.payloads.revealed(payloads[rows])] = math.log(self.passing[-1])
        return found

    @property
    def reveal_rate(self) -> float:
        return self.passing[-1]

    # ------------------------------------------------------------------ reports

    @property
    def payload_size(self) -> int:
        return self.payloads.payload_size

    @property
    def client_payload(self) -> dict[str, Any]:
        return self.payloads.client_payload

    @property
    def layout(self) -> Hashable:
        return type(self), self.num_symbols, self.level_symbols, tuple(member.layout for member in self.members)

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        yield from self.payloads.violations(payloads)

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """Every level draws, also behind the one that is sent, so that the words do not depend on the symbols.

        The mechanism of a level draws for its own symbol; for all later ones for the first of them.
        """
        places = np.argsort(self.order)[symbols]
        out = np.zeros((len(symbols), self.payload_size), dtype=np.uint8)
        passed = np.ones(len(symbols), dtype=bool)
        for level, member in enumerate(self.members):
            last = min(member.num_sensitive, member.num_symbols - 1)
            drawn = member.perturb(np.clip(places - self.starts[level], 0, last), source)
            passes = self.payloads.passes(level, drawn)
            sent = passed & ~passes
            out[sent] = self.payloads.sealed(level, drawn[sent])
            passed &= passes
        out[passed] = self.payloads.clear(symbols[passed])
        return out


def checked_levels(where: str, levels: object) -> tuple[Level, ...]:
    """The levels of a JSON form, or those that were checked before; raises SpecError."""
    if not isinstance(levels, (list, tuple)):
        raise SpecError(f"{where} must be a list of levels, got {describe(levels)}")
    if len(levels) < 2:
        raise SpecError(
            f"{where} must be at least 2 levels (one is the mechanism urr, uss or urap itself), got {len(levels)}"
        )
    checked: list[Level] = []
    for place, given in enumerate(levels):
        level = given if isinstance(given, Level) else _level(f"{where}[{place}]", given, is_first=place == 0)
        if checked and not level.epsilon > checked[-1].epsilon:
            raise SpecError(
                f"{where} must have epsilons that increase, got {level.epsilon:g} after {checked[-1].epsilon:g}"
            )
        checked.append(level)
    require_texts(f"{where} together", [value for level in checked for value in level.values or ()], at_least=1)
    return tuple(checked)


def _level(where: str, given: object, is_first: bool) -> Level:
    fields = require_mapping(where, given)
    require_keys(where, fields, ("epsilon",) if is_first else ("epsilon", "values"), ("epsilon", "values"))
    epsilon, values = fields["epsilon"], None
    in_range = is_number(epsilon) and 0 < epsilon <= MAX_EPSILON
    require_number(f"{where}.epsilon", epsilon, f"a number in (0, {MAX_EPSILON:g}]", in_range)
    if "values" in fields:
        require_texts(f"{where}.values", fields["values"], at_least=1)
        values = tuple(map(canonical, fields["values"]))
    return Level(float(epsilon), values)


def best_sizes(numbers: Sequence[int], epsilons: Sequence[float], sends_clear: bool) -> list[int]:
    """Set sizes with the least sum of n times the variances of all values.

    The values of a level are taken as rare, and as if everybody held some value of that level, as for ``uss``. A level
    that lets more values pass makes all later ones more precise: the sum from level l on is

        v_l V_l(d_l) + (the sum from level l + 1 on) / kappa_l(d_l),

    so sizes are chosen from the last level to the first.

    Args:
        numbers: v_l of each level.
        epsilons: of each level.
        sends_clear: whether there are values without a level.
    """
    later, sizes = float(sends_clear), []
    for number, epsilon in zip(reversed(numbers), reversed(epsilons)):
        d, gain = np.arange(1, max(number, 2)), math.expm1(epsilon)
        phi, eta = d / number, (d - 1) / max(number - 1, 1)
        kappa, miss = gain * phi / (1 + gain * phi), phi * (1 + gain * eta) / (1 + gain * phi)
        sums = number * miss * (1 - miss) / (kappa * (1 - eta)) ** 2 + later / kappa
        best = int(np.argmin(sums))
        later = float(sums[best])
        sizes.append(int(d[best]))
    return sizes[::-1]
