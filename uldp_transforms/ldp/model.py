"""Statistical model of reports, as estimators use it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from uldp_transforms.ldp.alphabets import Alphabet
from uldp_transforms.ldp.checks import describe, require_id, require_int
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import PAYS, split_counts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism

MAX_COHORTS = 1 << 16
MAX_CELLS = 1 << 22
"""Maximum number of counters per window, which limits an accumulator to 32 MiB."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """Maps values to reports, and reports to counts.

    Attributes:
        id: identifier, ``[a-z0-9._-]{1,64}``.
        alphabet: value -> symbol.
        mechanism: symbol -> report.
        num_cohorts: C, number of groups of reports, each with its own hash function.
    """

    id: str
    alphabet: Alphabet
    mechanism: Mechanism
    num_cohorts: int = 1

    def __post_init__(self) -> None:
        name = type(self).__name__
        require_id(f"{name}.id", self.id)
        require_int(f"{name}.num_cohorts", self.num_cohorts, 1, MAX_COHORTS)
        if self.num_cohorts * self.num_cells > MAX_CELLS:
            raise SpecError(
                f"{name}.num_cohorts times the number of counted cells must be at most {MAX_CELLS} counters, "
                f"got {self.num_cohorts} x {self.num_cells}"
            )
        of_alphabet = (self.alphabet.num_symbols, self.alphabet.num_sensitive)
        of_mechanism = (self.mechanism.num_symbols, self.mechanism.num_sensitive)
        if self.mechanism.num_hashes != self.alphabet.num_hashes:
            raise SpecError(
                f"{name}.mechanism must support the alphabet's {self.alphabet.num_hashes} hash functions, "
                f"got a mechanism for {self.mechanism.num_hashes}"
            )
        listed = sum(symbol >= of_alphabet[1] for symbol in self.mechanism.named_symbols.values())
        protected = of_alphabet[0] if self.mechanism.protects_all else of_alphabet[1] + listed
        expected = (of_alphabet[0], protected)
        if of_mechanism != expected:
            raise SpecError(
                f"{name}.mechanism must match the alphabet's {expected[0]} symbols, {expected[1]} of them "
                f"sensitive, got {of_mechanism[0]} and {of_mechanism[1]}"
            )
        if self.mechanism.num_others != self.alphabet.num_others:
            raise SpecError(
                f"{name}.mechanism must know of the alphabet's {self.alphabet.num_others} symbols without a place in "
                f"the order, got a mechanism for {self.mechanism.num_others}"
            )
        if self.mechanism.named_symbols:
            self._check_names(name, self.mechanism.named_symbols)
        elif self.mechanism.names_values:
            self._check_priors(name)
        self.alphabet.check_cohorts(self.num_cohorts)

    def _check_names(self, name: str, named: Mapping[str, int]) -> None:
        """Require that values have the symbols that the mechanism gives them."""
        for (value, symbol), own in zip(named.items(), self.alphabet.protected_symbols(tuple(named))):
            if symbol != own:
                raise SpecError(
                    f"{name}.mechanism must have the symbols of the alphabet, got symbol {symbol} instead of {own} for "
                    f"{describe(value)}"
                )

    def _check_priors(self, name: str) -> None:
        """Require that symbols are values in the same order, because the tables of the mechanism refer to values."""
        values = self.alphabet.known_values or ()
        if not self.mechanism.protects_all:
            if len(values) != self.alphabet.num_symbols or not self.alphabet.has_own_symbol(values).all():
                raise SpecError(
                    f"{name}.alphabet must give every value its own symbol for {type(self.mechanism).__name__}, got "
                    f"{type(self.alphabet).__name__} with {len(values)} known values and "
                    f"{self.alphabet.num_symbols} symbols"
                )
            return
        own = len(values) == self.alphabet.num_symbols == self.alphabet.num_sensitive
        own = own and bool(self.alphabet.has_own_symbol(values).all())
        if not own or (self.alphabet.symbol_table(values, 1)[0] != np.arange(len(values))).any():
            raise SpecError(
                f"{name}.alphabet must give every value its own symbol, in the order of the values, and "
                f"must have only sensitive values for {type(self.mechanism).__name__}, got "
                f"{type(self.alphabet).__name__} with "
                f"{len(values)} known values, {self.alphabet.num_symbols} symbols and {self.alphabet.num_sensitive} "
                f"sensitive ones"
            )

    @property
    def num_cells(self) -> int:
        """M, number of cells that the mechanism counts per cohort."""
        return self.mechanism.num_cells

    def count_groups(
        self,
        payloads: np.ndarray,
        rows: np.ndarray,
        num_periods: int,
        bit_patterns: bool = False,
        num_strata: int | None = None,
    ) -> list[CohortCounts]:
        """Counts of several periods in one pass over the reports.

        Args:
            payloads: (n, W) uint8, valid.
            rows: (n,) integers, ``period * num_cohorts + cohort`` of each report.
            num_periods: number of periods.
            bit_patterns: also count patterns of bits within reports, for two further sentinels; this takes time.
            num_strata: rows of each period, for counting by group and cohort; None: ``num_cohorts``.

        Returns:
            Counts of each period.
        """
        each = num_strata or self.num_cohorts
        num_rows = num_periods * each
        alone = num_rows == 1
        num_reports = np.array([[len(rows)]]) if alone else np.bincount(rows, minlength=num_rows).reshape(-1, each)
        cells = self.mechanism.count(payloads, rows, num_rows).reshape(num_periods, each, -1)
        patterns = np.zeros((num_periods, 0), dtype=np.int64)
        if bit_patterns:
            periods = rows.astype(np.int64) // each
            patterns = self.mechanism.count_patterns(payloads, periods, num_periods)
        return list(map(CohortCounts, num_reports, cells, patterns))

    def are_many(self, num_reports: Any, num_periods: int = 1, num_strata: int | None = None) -> Any:
        """Whether this number of reports (an integer or an array) is counted faster in full tables of all periods."""
        cells_of_a_report = 1 if self.mechanism.one_place else self.num_cells
        return num_reports * cells_of_a_report * PAYS >= num_periods * (num_strata or self.num_cohorts) * self.num_cells

    def count_few(
        self,
        payloads: np.ndarray,
        rows: np.ndarray,
        num_periods: int,
        bit_patterns: bool = False,
        num_strata: int | None = None,
    ) -> list[CohortCounts]:
        """``count_groups`` for few reports: counts only the cohorts that sent reports in a period.

        Time and memory are at most proportional to the number of reports times M, and do not depend on C. Counts are
        sparse where that saves memory.

        Args:
            payloads, rows, num_periods, bit_patterns, num_strata: as for ``count_groups``.

        Returns:
            Counts of each period.
        """
        each = num_strata or self.num_cohorts
        shapes = np.broadcast_to([each, self.num_cells], (num_periods, 2))
        present, groups, sizes = np.unique(rows, return_inverse=True, return_counts=True)
        periods_of_rows, cohorts = np.divmod(present.astype(np.int64), each)
        at, numbers = self.mechanism.count_places(payloads, groups, len(present))
        row, cell = np.divmod(at, self.num_cells)
        patterns = np.zeros((num_periods, 0), dtype=np.int64)
        if bit_patterns:
            patterns = self.mechanism.count_patterns(payloads, periods_of_rows[groups], num_periods)
        # one list of all periods, each of which has C numbers of reports and then C M cells
        length = each * (1 + self.num_cells)
        of_reports = periods_of_rows * length + cohorts
        of_cells = periods_of_rows[row] * length + each + cohorts[row] * self.num_cells + cell
        places = np.concatenate([of_reports, of_cells])
        order = np.argsort(places, kind="stable")  # linear: both parts are sorted
        return list(split_counts(shapes, places[order], np.concatenate([sizes, numbers])[order], patterns))


def keeps_memos(model: Model) -> bool:
    """Whether clients keep a memo of each symbol, so that the noise of a person's reports is correlated."""
    mechanism = model.mechanism
    return isinstance(mechanism, SetReportMechanism) and mechanism.epsilon_inf is not None
