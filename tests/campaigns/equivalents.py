"""Mutants that are the same program, each with the reason; ``tests.campaigns.mutants`` counts them apart.

``tests/project/test_planted.py`` checks that each is still to be had, exactly once.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.campaigns.mutations import Mutant


class Equivalent(NamedTuple):
    """A file, the function in it, its line as it is and with the change, and why no test can tell the difference."""

    path: str
    function: str
    old: str
    new: str
    why: str


EQUIVALENTS = (  # in the order of their files
    Equivalent(
        "native/reading.h",
        "",
        "if (place == 9 && byte > 1)",
        "if (place == 9 && byte >= 1)",
        "numbers from 2^62 on are outside of all ranges: their messages are left to the decoder in Python, as before",
    ),
    Equivalent(
        "native/split_reports.c",
        "",
        "if (catalog->entries[i].number < 0 || catalog->entries[i].number >= catalog->size || one->payload_size < 0)",
        "if (catalog->entries[i].number < 0 || catalog->entries[i].number >= catalog->size || one->payload_size <= 0)",
        "payloads of all mechanisms have a byte or more",
    ),
    Equivalent(
        "uldp_transforms/jobs/engines/last_words.py",
        "on import",
        "_SPOKEN = 2.0",
        "_SPOKEN = 3.0",
        "the longest wait for a line that an engine may have printed; it ends with the line",
    ),
    Equivalent(
        "uldp_transforms/jobs/engines/memory_limit.py",
        "on import",
        "EVERY = 5.0",
        "EVERY = 7.5",
        "how often memory is looked at is a matter of choice",
    ),
    Equivalent(
        "uldp_transforms/jobs/follow/topic_identity.py",
        "on import",
        "_GLANCE = 0.1  # seconds of one poll",
        "_GLANCE = 0.15000000000000002  # seconds of one poll",
        "a poll is repeated until the records have come or the time is over",
    ),
    Equivalent(
        "uldp_transforms/jobs/kafka/polled.py",
        "_StreamFn.process",
        "while (left := ends - time.monotonic()) > 0:",
        "while ((left := (ends - time.monotonic())) >= 0):",
        "one more poll, of no time, if the clock stands exactly at the end",
    ),
    Equivalent(
        "uldp_transforms/jobs/reestimate/stored_counts.py",
        "_is_whole",
        "return False  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained",
        "return None  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained",
        "only whether it is true is asked",
    ),
    Equivalent(
        "uldp_transforms/jobs/report/page_scales.js",
        "",
        "const least = Math.ceil(Math.log10(top) - DECADES - 1e-9);",
        "const least = Math.ceil(Math.log10(top) - DECADES - 1e-10);",
        "a tolerance for the last digits of floats, a million times larger than their rounding",
    ),
    Equivalent(
        "uldp_transforms/jobs/report/page_scales.js",
        "",
        "return Array.from({ length: Math.floor(Math.log10(top) + 1e-9) - least + 1 }, (_, at) => 10 ** (least + at));",
        "return Array.from({ length: Math.floor(Math.log10(top) + 1e-10) - least + 1 }, "
        "(_, at) => 10 ** (least + at));",
        "as above",
    ),
    Equivalent(
        "uldp_transforms/jobs/report/page_scales.js",
        "",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-12);",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power > top / 4 - 1e-12);",
        "no share is exactly so much smaller than a round one",
    ),
    Equivalent(
        "uldp_transforms/jobs/report/page_scales.js",
        "",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-12);",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-13);",
        "a tolerance for the last digits of floats",
    ),
    Equivalent(
        "uldp_transforms/jobs/report/page_scales.js",
        "",
        "return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, at) => at * step);",
        "return Array.from({ length: Math.floor(top / step + 1e-10) + 1 }, (_, at) => at * step);",
        "a tolerance for the last digits of floats, a million times larger than their rounding",
    ),
    Equivalent(
        "uldp_transforms/ldp/borrowing/borrow.py",
        "_signs",
        "rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761) % (order - 1) + 1",
        "rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761) % (order - 1) + 2",
        "other rows of the same matrix: any that are different and balanced do",
    ),
    Equivalent(
        "uldp_transforms/ldp/borrowing/borrow.py",
        "need_of_borrowing",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 2 / alphabet.num_symbols)) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "uldp_transforms/ldp/client_window.py",
        "ClientWindow.of",
        "if not 0 < length <= _LONGEST or (timezone is not None and length % DAY):",
        "if not 1 < length <= _LONGEST or (timezone is not None and length % DAY):",
        "the smallest unit is a minute: no text has the length of a millisecond",
    ),
    Equivalent(
        "uldp_transforms/ldp/counts/bit_planes.py",
        "_rows_of",
        "for width in np.unique(widths[widths > 0]).tolist():",
        "for width in np.unique(widths[(widths >= 0)]).tolist():",
        "rows without a bit have no bytes",
    ),
    Equivalent(
        "uldp_transforms/ldp/counts/bit_totals.py",
        "on import",
        "_CHUNK_BYTES = 1 << 21",
        "_CHUNK_BYTES = 1 << 22",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/mechanisms/count_intervals.py",
        "_lower",
        "slope = (so_many - more) * (x / at + (trials - x) / (1 - at))",
        "slope = (so_many - more) * (x / at + ((trials - x) * (1 - at)))",
        "steps of Newton's method that are too long or too short are followed by bisection, which finds the same root",
    ),
    Equivalent(
        "uldp_transforms/ldp/model.py",
        "Model.are_many",
        "return num_reports * cells_of_a_report * PAYS >= "
        "num_periods * (num_strata or self.num_cohorts) * self.num_cells",
        "return (num_reports / cells_of_a_report) * PAYS >= "
        "num_periods * (num_strata or self.num_cohorts) * self.num_cells",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/least_squares.py",
        "solver",
        "system = gram + np.trace(gram) / size**2 if complete else gram  # leaves minima with sum(p) = 1 unchanged",
        "system = gram + np.trace(gram) / (size * 2) if complete else gram  # leaves minima with sum(p) = 1 unchanged",
        "adds a positive number to all entries, which the sum of 1 makes a constant of the loss",
    ),
)

_REASONS = {each[:4]: each.why for each in EQUIVALENTS}


def key_of(mutant: Mutant, source: bytes) -> tuple[str, str, str, str]:
    """What names a mutant: its place may move."""
    return (mutant.path, mutant.function, *mutant.lines(source))


def reason_of(mutant: Mutant, source: bytes) -> str | None:
    """Why a mutant of this source is the same program; None if it is not in the list."""
    return _REASONS.get(key_of(mutant, source))
