"""The client's half of reports that name a public block: the channel is block-diagonal.

A report of a value in block b is the number of b, in clear, and a report of the mechanism of b, which perturbs the
value among those of b. So no report says more about the value within its block than the mechanism allows, and every
report says in which block the value is.

Payload: the number of the block, little-endian, in 1 byte (up to 256 blocks) or 2; the payload of its mechanism; zeros
up to the longest one. Blocks of equal size share a mechanism, a *part*.

Symbols: see ``block_places``.

Notation: n reports, C cohorts, B blocks, K symbols, M counted cells; K_b, v_b, M_b of block b.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.counts.block_places import Sizes, symbols_of_blocks
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind, Mechanism, exact_sums
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WordSource


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockChannel(Mechanism):
    """How reports with a public block are drawn, checked and counted; see the module.

    Attributes:
        sizes: of the blocks, as the alphabet declares them.
        parts: the mechanism of each different size, in the order in which the sizes first occur.
    """

    alike_in_blocks: ClassVar[bool] = False

    sizes: Sizes
    parts: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        """Take over what the parts say; they and the alphabet have been checked."""
        named = self._named
        for name, value in (("id", named.id), ("about", named.about), ("protects_all", named.protects_all)):
            object.__setattr__(self, name, value)

    @functools.cached_property
    def _named(self) -> Mechanism:
        """A part with the mechanism that the collection names: not that of a block without sensitive values."""
        return next(part for part in self.parts if part.num_sensitive)

    def to_json(self) -> dict[str, Any]:
        return self._named.to_json()

    # ------------------------------------------------------------------ blocks

    @property
    def num_blocks(self) -> int:
        """B."""
        return len(self.sizes)

    @functools.cached_property
    def part_of(self) -> np.ndarray:
        """(B,) int64: the part that serves each block."""
        numbers = {size: number for number, size in enumerate(dict.fromkeys(self.sizes))}
        return np.array([numbers[size] for size in self.sizes], dtype=np.int64)

    @functools.cached_property
    def blocks_of(self) -> tuple[np.ndarray, ...]:
        """For each part, the blocks that it serves, (B_p,) int64."""
        return tuple(np.flatnonzero(self.part_of == number) for number in range(len(self.parts)))

    @functools.cached_property
    def symbols_of(self) -> tuple[np.ndarray, ...]:
        """For each part, the symbols of its blocks, (B_p, K_b) int64."""
        table = symbols_of_blocks(self.sizes)
        return tuple(np.array([table[block] for block in blocks.tolist()]) for blocks in self.blocks_of)

    @functools.cached_property
    def cells_of(self) -> tuple[np.ndarray, ...]:
        """For each part, the cells of its blocks, (B_p, M_b) int64: their symbols', then further cells of the part."""
        found, start = [], self.num_symbols
        for part, symbols in zip(self.parts, self.symbols_of):
            further = part.num_cells - part.num_symbols
            places = start + np.arange(len(symbols) * further).reshape(len(symbols), further)
            found.append(np.concatenate([symbols, places], axis=1))
            start += places.size
        return tuple(found)

    @functools.cached_property
    def block_of_symbol(self) -> np.ndarray:
        """(K,) int64."""
        found = np.empty(self.num_symbols, dtype=np.int64)
        for blocks, symbols in zip(self.blocks_of, self.symbols_of):
            found[symbols] = blocks[:, np.newaxis]
        return found

    @functools.cached_property
    def _within(self) -> np.ndarray:
        """(K,) int64: the number of each symbol within its block."""
        found = np.empty(self.num_symbols, dtype=np.int64)
        for symbols in self.symbols_of:
            found[symbols] = np.arange(symbols.shape[1])
        return found

    @property
    def num_cells(self) -> int:
        """The cells of all blocks, then the reports of each block."""
        return sum(cells.size for cells in self.cells_of) + self.num_blocks

    def reports_of(self, counts: CohortCounts) -> np.ndarray:
        """(C, B) int64: numbers of reports of each block."""
        return counts.cells[:, self.num_cells - self.num_blocks :]

    def stated_sums(self, counts: CohortCounts) -> list[tuple[np.ndarray, int]]:
        symbols = symbols_of_blocks(self.sizes)
        return list(zip(symbols, self.reports_of(counts).sum(axis=0).tolist()))

    def part_and_counts(self, counts: CohortCounts, block: int) -> tuple[Mechanism, CohortCounts]:
        """The mechanism of a block, and the counts of its reports: C cohorts, M_b cells."""
        number = int(self.part_of[block])
        cells = self.cells_of[number][np.searchsorted(self.blocks_of[number], block)]
        return self.parts[number], CohortCounts(self.reports_of(counts)[:, block], counts.cells[:, cells])

    def counts_of(self, counts: CohortCounts, number: int) -> CohortCounts:
        """Counts of the blocks of a part, as (C B_p) cohorts."""
        reports = self.reports_of(counts)[:, self.blocks_of[number]]
        cells = counts.cells[:, self.cells_of[number]]
        return CohortCounts(reports.reshape(-1), cells.reshape(reports.size, -1))

    # ------------------------------------------------------------------ the definition

    @property
    def has_signal(self) -> bool:
        return all(part.has_signal for part in self.parts)

    @property
    def effective_epsilon(self) -> float:
        return max(part.effective_epsilon for part in self.parts)

    @property
    def exact_ratio(self) -> Fraction:
        return max(part.exact_ratio for part in self.parts)

    def kinds(self) -> Iterator[Kind]:
        for part in self.parts:
            yield from part.kinds()

    def epsilon_after(self, num_reports: int) -> float:
        return max(part.epsilon_after(num_reports) for part in self.parts if part.num_sensitive)

    @property
    def sends_clear(self) -> bool:
        return any(part.sends_clear for part in self.parts)

    @property
    def states(self) -> tuple[str, ...]:
        return ("the block of the answer",)

    @property
    def confusable(self) -> list[range | list[int]]:
        return [symbols.tolist() for symbols in symbols_of_blocks(self.sizes)]

    @property
    def described(self) -> About:
        about = self._named.described
        return about._replace(
            sends=f"the block of the value in clear, and within the block {about.sends}",
            protects=f"{about.protects.partition('. ')[0]}, against the other values of the same block",
        )

    @property
    def caveats(self) -> list[str]:
        """Of the parts, with the sizes of their blocks where parts differ; and of blocks without sensitive values."""
        sensitive = [part for part in self.parts if part.num_sensitive]
        found = []
        for part in sensitive:
            where = f"In blocks of {part.num_symbols} symbols, {part.num_sensitive} of them sensitive: "
            shared = set.intersection(*(set(other.caveats) for other in sensitive))
            found += [said if said in shared else where + said[0].lower() + said[1:] for said in part.caveats]
        if len(sensitive) < len(self.parts):
            found.append("Values of blocks without sensitive values are always sent in clear.")
        return list(dict.fromkeys(found))

    @property
    def num_outputs(self) -> int:
        return sum(len(blocks) * part.num_outputs for blocks, part in zip(self.blocks_of, self.parts))

    @property
    def exact_weights(self) -> dict[str, Any]:
        return {"parts": [part.exact_weights for part in self.parts]}

    @property
    def client_sampler(self) -> dict[str, Any]:
        parts = [
            {
                "num_first": own,
                "num_symbols": part.num_symbols,
                "num_sensitive": part.num_sensitive,
                "sampler": part.client_sampler,
                "payload": part.client_payload,
            }
            for part, (_, own) in zip(self.parts, dict.fromkeys(self.sizes))
        ]
        return {"sampler": "within_blocks", "part_of": self.part_of.tolist(), "parts": parts}

    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        payloads, rows = [], []
        for number, part in enumerate(self.parts):
            of_part, shares = part.channel()
            for block, symbols in zip(self.blocks_of[number].tolist(), self.symbols_of[number].tolist()):
                for payload, probabilities in zip(of_part, shares):
                    row = [Fraction(0)] * self.num_symbols
                    for symbol, probability in zip(symbols, probabilities):
                        row[symbol] = probability
                    head = block.to_bytes(self.block_bytes, "little") + payload
                    payloads.append(head.ljust(self.payload_size, b"\0"))
                    rows.append(row)
        return payloads, rows

    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        logs = np.full((len(payloads), self.num_symbols), -np.inf)
        for number, rows, place, inner in self._sorted_out(payloads):
            logs[rows[:, np.newaxis], self.symbols_of[number][place]] = self.parts[number].log_prob(inner)
        return logs

    # ------------------------------------------------------------------ reports

    @property
    def block_bytes(self) -> int:
        """Number of bytes that name the block."""
        return 1 if self.num_blocks <= 1 << 8 else 2

    @property
    def payload_size(self) -> int:
        return self.block_bytes + max(part.payload_size for part in self.parts)

    @property
    def client_payload(self) -> dict[str, Any]:
        return {"layout": "block", "bytes": self.payload_size, "block_bytes": self.block_bytes}

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """The reports of each part are drawn together, part after part; see ``Mechanism.perturb``."""
        return self._drawn(symbols, lambda part, own: part.perturb(own, source))

    def _drawn(self, symbols: np.ndarray, draw: Callable[[Mechanism, np.ndarray], np.ndarray]) -> np.ndarray:
        """Payloads (n, W) of symbols (n,) or (n, h), whose rest after the block is drawn by its part."""
        payloads = np.zeros((len(symbols), self.payload_size), dtype=np.uint8)
        blocks = self.block_of_symbol[symbols if symbols.ndim == 1 else symbols[:, 0]]
        for byte in range(self.block_bytes):
            payloads[:, byte] = blocks >> 8 * byte & 0xFF
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(self.part_of[blocks] == number)
            if len(rows):
                own = draw(part, self._within[symbols[rows]])
                payloads[rows, self.block_bytes : self.block_bytes + own.shape[1]] = own
        return payloads

    def stated_blocks(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) int64: the number that each payload states; of valid ones it is below B."""
        weights = 256 ** np.arange(self.block_bytes, dtype=np.int64)
        return payloads[:, : self.block_bytes] @ weights

    def _sorted_out(self, payloads: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """For each part with payloads: its number, their rows (m,), the place of their blocks among those of the part
        (m,), and their rest (m, W_p)."""
        blocks = self.stated_blocks(payloads)
        known = np.flatnonzero(blocks < self.num_blocks)
        for number, part in enumerate(self.parts):
            rows = known[self.part_of[blocks[known]] == number]
            if len(rows):
                place = np.searchsorted(self.blocks_of[number], blocks[rows])
                inner = payloads[rows, self.block_bytes : self.block_bytes + part.payload_size]
                yield number, rows, place, np.ascontiguousarray(inner)

    @property
    def layout(self) -> Hashable:
        return type(self), self.sizes, tuple(part.layout for part in self.parts)

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        found = {Reason.VALUE_DOMAIN: self.stated_blocks(payloads) >= self.num_blocks}
        for number, rows, _, inner in self._sorted_out(payloads):
            part = self.parts[number]
            rest = payloads[rows, self.block_bytes + part.payload_size :]
            for reason, mask in (*part.violations(inner), (Reason.IMPOSSIBLE_REPORT, rest.any(axis=1))):
                found.setdefault(reason, np.zeros(len(payloads), dtype=bool))[rows] |= mask
        yield from found.items()

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        table = np.zeros((num_groups, self.num_cells), dtype=np.int64)
        first = self.num_cells - self.num_blocks
        for number, rows, place, inner in self._sorted_out(payloads):
            size = len(self.blocks_of[number])
            of_blocks = groups[rows].astype(np.int64) * size + place
            cells = self.parts[number].count(inner, of_blocks, num_groups * size)
            table[:, self.cells_of[number]] = cells.reshape(num_groups, size, -1)
            reports = np.bincount(of_blocks, minlength=num_groups * size).reshape(num_groups, size)
            table[:, first + self.blocks_of[number]] = reports
        return table

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().count_violations(counts)
        others = np.array(exact_sums(self.reports_of(counts)) != counts.num_reports, dtype=bool)
        yield "reports of blocks that sum to those of the cohort", others
        for number, part in enumerate(self.parts):
            for rule, wrong in part.count_violations(self.counts_of(counts, number)):
                somewhere = np.asarray(wrong.reshape(len(counts.num_reports), -1).any(axis=1))
                yield f"within each block {rule}", somewhere


def check_part(part: Mechanism) -> Mechanism:
    """Refuse a mechanism whose fields refer to single values or to their order, and memos; raises SpecError."""
    if vars(part).get("epsilon_inf") is not None:
        raise SpecError(
            "mechanism.epsilon_inf must be absent for the alphabet blocks, because memos do not hide that a "
            f"block changes, got {vars(part)['epsilon_inf']!r}"
        )
    if part.names_values or part.last_is_missing or part.num_others or not part.alike_in_blocks:
        raise SpecError(not_alike(part.id))
    return part


def not_alike(name: str) -> str:
    """The refusal of a mechanism whose fields refer to single values or to their order."""
    return (
        "mechanism.id must be one that treats all values alike, such as krr, ss or uss, for the alphabet blocks, "
        f"got {name!r}"
    )
