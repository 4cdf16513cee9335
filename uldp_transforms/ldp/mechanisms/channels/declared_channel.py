"""Randomized response that is declared by its channel matrix: of surveys, browsers, statistical offices, libraries.

Sources: Warner 1965, Greenberg et al. 1969 (unrelated question), Boruch 1971 (forced response) and Yu, Tian and Tang
2008 (crosswise model) have matrices with two rows; the post-randomization method of statistical offices (Gouweleeuw et
al. 1998) accepts any matrix.
"""

from __future__ import annotations

import dataclasses
import decimal
import functools
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.matrix_channel import MatrixChannel, Weights
from uldp_transforms.ldp.mechanisms.declared_priors import MAX_VALUES
from uldp_transforms.ldp.mechanisms.mechanism import About
from uldp_transforms.ldp.sampling import WORD, WordSource, exp_bounds

MAX_ENTRIES = 1 << 20
"""Maximum number of matrix entries: outputs times symbols."""

_PROBABILITY = re.compile(r"^[0-9]{1,40}(/[0-9]{1,40}|\.[0-9]{1,40})?$")
_LONGEST = 30  # maximum number of characters of a fraction in a message
_FEW = 3  # maximum number of outputs named in a caveat

Matrix = tuple[tuple[str | int, ...], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeclaredChannel(MatrixChannel):
    """Reports a symbol x as output y with the declared probability ``matrix[y][x]``.

    ``epsilon`` is derived: the logarithm of the largest ratio of two probabilities in a row, rounded up. It is infinite
    if a row has both a 0 and a larger probability, because that output excludes a symbol.

    Attributes:
        matrix: M rows, one per output, of K probabilities, one per symbol; each column sums to 1. A probability is a
            text such as ``"5/6"`` or ``"0.25"``, or an integer out of 2**64.
        clients: ``"own"``: clients of this library draw reports. ``"foreign"``: reports are only decoded.

    Source: see the module; the inverse and its covariance: ``matrix_channel``.
    """

    id: ClassVar[str] = "channel"
    about: ClassVar[About] = About(
        sends="one of M outputs, with the declared probabilities of `matrix`; `clients` own or foreign",
        protects="every value, with the epsilon that follows from the matrix; nothing if that is infinite",
        source="Warner 1965; Boruch 1971; Yu, Tian & Tang 2008",
        payload="the output, little-endian, in 1 byte (up to 256 outputs), 2 (up to 65,536) or 4",
    )
    protects_all: ClassVar[bool] = True
    names_values: ClassVar[bool] = True
    alike_in_blocks: ClassVar[bool] = False

    epsilon: float = dataclasses.field(init=False, default=math.inf)
    matrix: Matrix = dataclasses.field(
        metadata={
            "schema": {
                "description": "One row per output: Pr(output | value) in the order of the values, as texts such as "
                "5/6 or 0.25, or as integers out of 2**64; each column sums to 1.",
                "type": "array",
                "minItems": 2,
                "items": {
                    "type": "array",
                    "minItems": 2,
                    "items": {"type": ["string", "integer"], "pattern": _PROBABILITY.pattern, "minimum": 0},
                },
            }
        }
    )
    clients: str = dataclasses.field(
        default="own",
        metadata={
            "schema": {
                "description": "own: clients of this library draw reports. foreign: reports are only decoded.",
                "enum": ["own", "foreign"],
            }
        },
    )

    def check_epsilon(self) -> None:
        """Do nothing: the matrix determines epsilon; see ``check_own_fields``."""

    def check_own_fields(self) -> None:
        name, num_symbols = type(self).__name__, self.num_symbols
        if num_symbols > MAX_VALUES:
            raise SpecError(f"{name}.num_symbols must be at most {MAX_VALUES}, got {num_symbols}")
        if self.clients not in ("own", "foreign"):
            raise SpecError(f"{name}.clients must be 'own' or 'foreign', got {describe(self.clients)}")
        object.__setattr__(self, "matrix", _checked(f"{name}.matrix", self.matrix, num_symbols))
        for output, row in enumerate(self.weights):
            if not any(row):
                raise SpecError(f"{name}.matrix must let a symbol send every output, got zeros alone in row {output}")
        if not self.has_signal:
            raise SpecError(
                f"{name}.matrix must have columns that tell the symbols apart, got columns that are combinations of "
                "others, or nearly so"
            )
        object.__setattr__(self, "epsilon", _epsilon_of(self.weights))

    # ------------------------------------------------------------------ the definition

    @functools.cached_property
    def weights(self) -> Weights:
        """Each probability times 2**64, rounded down; the largest entry of each column receives the remainder."""
        columns = [_column(entries) for entries in zip(*self.matrix)]
        return tuple(zip(*columns))

    @property
    def num_outputs(self) -> int:
        return len(self.matrix)

    @property
    def exact_ratio(self) -> Fraction:
        """The largest ratio of two probabilities in a row, without rows that contain a 0, which exclude symbols."""
        return max((Fraction(max(row), min(row)) for row in self.weights if min(row)), default=Fraction(1))

    @property
    def effective_epsilon(self) -> float:
        return math.inf if math.isinf(self.epsilon) else math.log(self.exact_ratio)

    @property
    def described(self) -> About:
        sends = f"one of {self.num_outputs:,} outputs, drawn with the declared probabilities"
        return self.about._replace(sends=sends, protects="every value")

    @property
    def caveats(self) -> list[str]:
        telling = [(y, [x for x, weight in enumerate(row) if not weight]) for y, row in enumerate(self.weights)]
        telling = [(output, symbols) for output, symbols in telling if symbols]
        if not telling:
            return super().caveats
        named = "; ".join(f"output {y} rules out {_listed('symbol', symbols)}" for y, symbols in telling[:_FEW])
        more = f"; and {len(telling) - _FEW} more outputs rule symbols out" if len(telling) > _FEW else ""
        return [f"No epsilon holds: {named}{more}."]

    @property
    def exact_weights(self) -> dict[str, Any]:
        return {"weights": [[str(weight) for weight in column] for column in zip(*self.weights)]}

    @property
    def client_sampler(self) -> dict[str, Any]:
        return {"sampler": "table"} | self.exact_weights

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """See ``MatrixChannel.perturb``.

        Raises:
            SpecError: if reports come from foreign clients.
        """
        self.check_clients()
        return super().perturb(symbols, source)

    def check_clients(self) -> None:
        if self.clients == "foreign":
            raise SpecError(
                f"{type(self).__name__}.clients must be 'own' to draw reports, got 'foreign', whose reports are only "
                "decoded"
            )


def _checked(where: str, matrix: object, num_symbols: int) -> Matrix:
    """The rows as tuples; raises SpecError if they are not a channel for this number of symbols."""
    if not isinstance(matrix, (list, tuple)) or len(matrix) < num_symbols:
        raise SpecError(
            f"{where} must be a list of at least {num_symbols} rows, one an output, got {_size(matrix, 'row')}"
        )
    if len(matrix) * num_symbols > MAX_ENTRIES:
        raise SpecError(f"{where} must have at most {MAX_ENTRIES} entries, got {len(matrix)} x {num_symbols}")
    for number, row in enumerate(matrix):
        if not isinstance(row, (list, tuple)) or len(row) != num_symbols:
            raise SpecError(
                f"{where} must have rows of {num_symbols} probabilities, got {_size(row, 'entry')} in row {number}"
            )
        for entry in row:
            if _exact(entry) is None:
                raise SpecError(
                    f"{where} must have probabilities as texts such as '5/6' or '0.25', or as integers out of 2**64, "
                    f"got {describe(entry)} in row {number}"
                )
    for symbol, column in enumerate(zip(*matrix)):
        total = sum((_exact(entry) or Fraction(0) for entry in column), Fraction(0))
        if total != 1:
            raise SpecError(f"{where} must have columns that sum to exactly 1, got {_text(total)} in column {symbol}")
    return tuple(map(tuple, matrix))


def _size(value: object, noun: str) -> str:
    if not isinstance(value, (list, tuple)):
        return describe(value)
    plural = {"row": "rows", "entry": "entries"}[noun]
    return f"{len(value)} {noun if len(value) == 1 else plural}"


def _text(total: Fraction) -> str:
    """A fraction in full if it is short, otherwise its difference from 1."""
    text, rest = str(total), float(total - 1)
    return text if len(text) <= _LONGEST else f"1 {'-' if rest < 0 else '+'} {abs(rest):.3g}"


@functools.lru_cache(maxsize=1 << 12)
def _exact(entry: object) -> Fraction | None:
    """The probability as a fraction; None if the entry is not a probability."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        found = Fraction(entry, WORD)
    elif isinstance(entry, str) and _PROBABILITY.match(entry) and not re.fullmatch(r"\d+/0+", entry):
        found = Fraction(entry)
    else:
        return None
    return found if 0 <= found <= 1 else None


def _column(entries: Sequence[str | int]) -> list[int]:
    exact = [_exact(entry) or Fraction(0) for entry in entries]
    weights = [(WORD * share.numerator) // share.denominator for share in exact]
    weights[exact.index(max(exact))] += WORD - sum(weights)
    return weights


def _epsilon_of(weights: Weights) -> float:
    """The smallest float epsilon with e**epsilon provably at least every ratio in a row; inf if a row has a 0.

    At least one ratio must be above 1.
    """
    if any(min(row) == 0 for row in weights):
        return math.inf
    ratio = max(Fraction(max(row), min(row)) for row in weights)
    context = decimal.Context(prec=60)
    epsilon = float(context.ln(context.divide(decimal.Decimal(ratio.numerator), decimal.Decimal(ratio.denominator))))
    while exp_bounds(epsilon)[0] < ratio:
        epsilon = math.nextafter(epsilon, math.inf)
    return epsilon


def _listed(noun: str, numbers: Sequence[int]) -> str:
    few = ", ".join(map(str, numbers[:_FEW])) + (f" and {len(numbers) - _FEW} more" if len(numbers) > _FEW else "")
    return f"{noun if len(numbers) == 1 else noun + 's'} {few}"
