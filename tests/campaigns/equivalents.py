"""Mutants that are the same program, each with the reason; ``tests.campaigns.mutants`` counts them apart.

``tests/project/test_planted.py`` checks that each is still to be had, as often as it is listed.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.campaigns.mutations import Mutant


class Equivalent(NamedTuple):
    """A function, its line as it is and with the change, and why no test can tell the difference.

    The file does not matter, so that code can be moved. A line that stands in two files is in the list twice.
    """

    function: str
    old: str
    new: str
    why: str


_AT_A_TIME = "changes only how much is done at a time, and so time and memory: the results are the same"


def _sizes(old: str, *changed: str, why: str = _AT_A_TIME) -> tuple[Equivalent, ...]:
    """Other sizes in a line that runs on import."""
    return tuple(Equivalent("on import", old, new, why) for new in changed)


_EITHER_WAY = "chooses between two ways to the same result"


def _ways(function: str, old: str, *changed: tuple[str, str], why: str = _EITHER_WAY) -> tuple[Equivalent, ...]:
    """Another limit between two ways to the same result, one of which is faster below it."""
    return tuple(Equivalent(function, old, old.replace(part, new), why) for part, new in changed)


EQUIVALENTS = (  # in the order of their files
    Equivalent(
        "",
        "if (place == 9 && byte > 1)",
        "if (place == 9 && byte >= 1)",
        "numbers from 2^62 on are outside of all ranges: their messages are left to the decoder in Python, as before",
    ),
    Equivalent(
        "",
        "if (catalog->entries[i].number < 0 || catalog->entries[i].number >= catalog->size || one->payload_size < 0)",
        "if (catalog->entries[i].number < 0 || catalog->entries[i].number >= catalog->size || one->payload_size <= 0)",
        "payloads of all mechanisms have a byte or more",
    ),
    Equivalent(
        "",
        "if (end - at <= FIXED_BYTES || at[0] != FORM)",
        "if (end - at < FIXED_BYTES || at[0] != FORM)",
        "of a message that ends with these bytes no number can be read: it is left to the decoder in Python, as before",
    ),
    Equivalent(
        "",
        "if (end - at <= FIXED_BYTES || at[0] != FORM)",
        "if (end - at < FIXED_BYTES || at[0] != FORM)",
        "of a message that ends with these bytes no number can be read: it is left to the decoder in Python, as before",
    ),
    *_ways(
        "encode_counts",
        "largest = int(numbers.max(initial=0)) if numbers.min(initial=0) >= 0 else (1 << 63) - 1  # negative numbers",
        ("numbers.max(initial=0)", "numbers.max(initial=1)"),
        ("numbers.min(initial=0)", "numbers.min(initial=1)"),
        why="0 and 1 take one byte, and neither is negative",
    ),
    *_ways(
        "_in_bits",
        "widths, largest = row_widths(counts.cells), int(counts.num_reports.max(initial=0))",
        ("initial=0", "initial=1"),
        why="0 and 1 take one byte",
    ),
    *_ways(
        "_in_bits",
        "if widths is None or counts.num_reports.min(initial=0) < 0 or largest >= 1 << 32:",
        ("initial=0", "initial=1"),
        why="neither is negative",
    ),
    *_sizes("_LARGE = 1 << 12", "_LARGE = 2 << 12", "_LARGE = 1 << 13"),
    *_sizes("SECONDS = 600.0", "SECONDS = 900.0"),
    *_sizes("MOST = 1 << 16", "MOST = 2 << 16", "MOST = 1 << 17"),
    *_sizes(
        "_MAX_CELLS = 1 << 22",
        *("_MAX_CELLS = 2 << 22", "_MAX_CELLS = 1 << 23"),
    ),
    *_sizes("_OF_A_SUM = 64", "_OF_A_SUM = 65"),
    *_sizes("_LONG = 1 << 12", "_LONG = 2 << 12", "_LONG = 1 << 13"),
    *_sizes(
        "_WAITING_BYTES = 1 << 21",
        *("_WAITING_BYTES = 2 << 21", "_WAITING_BYTES = 1 << 22"),
    ),
    *_ways(
        "_CountBundleFn.process",
        "if self._bytes_waiting >= _WAITING_BYTES:",
        ("self._bytes_waiting >= _WAITING_BYTES", "(self._bytes_waiting > _WAITING_BYTES)"),
        why=_AT_A_TIME,
    ),
    *_ways(
        "_CountBundleFn.process",
        "if len(part) >= _LONG * len(part.owners):",
        ("len(part) >= _LONG * len(part.owners)", "(len(part) > _LONG * len(part.owners))"),
        why=_AT_A_TIME,
    ),
    *_sizes("_BLOCK = 1 << 15", "_BLOCK = 2 << 15", "_BLOCK = 1 << 16"),
    *_sizes(
        "_MOST_CELLS = 1 << 20",
        "_MOST_CELLS = 2 << 20",
        "_MOST_CELLS = 1 << 21",
    ),
    *_sizes("TOGETHER = 256", "TOGETHER = 257"),
    *_sizes(
        "_FLUSH_BYTES = 1 << 21",
        *("_FLUSH_BYTES = 2 << 21", "_FLUSH_BYTES = 1 << 22"),
    ),
    *_sizes(
        "_FLUSH_MESSAGES = 1 << 14",
        *("_FLUSH_MESSAGES = 2 << 14", "_FLUSH_MESSAGES = 1 << 15"),
    ),
    *_sizes("_LOOKED_AT = 64", "_LOOKED_AT = 65"),
    *_sizes(
        "_RATIO = 4  # a run is merged with the next one unless it is more than so many times as long",
        "_RATIO = 5  # a run is merged with the next one unless it is more than so many times as long",
    ),
    *_sizes(
        "_MERGED_AT_ONCE = 1 << 16",
        *("_MERGED_AT_ONCE = 2 << 16", "_MERGED_AT_ONCE = 1 << 17"),
    ),
    *_sizes(
        "_FIRST_SLOTS = 1 << 4",
        *("_FIRST_SLOTS = 2 << 4", "_FIRST_SLOTS = 1 << 5"),
    ),
    *_sizes("_MAX_FILLED = 0.5", "_MAX_FILLED = 0.75"),
    *_sizes(
        "_AT_ONCE = 1 << 16",
        *("_AT_ONCE = 2 << 16", "_AT_ONCE = 1 << 17"),
    ),
    *_sizes(
        "_MAX_CELLS = 1 << 22",
        *("_MAX_CELLS = 2 << 22", "_MAX_CELLS = 1 << 23"),
    ),
    *_sizes("_SMALL = 1 << 15", "_SMALL = 2 << 15", "_SMALL = 1 << 16"),
    *_sizes(
        "_NOTE_EVERY = 64  # blocks of messages",
        "_NOTE_EVERY = 65  # blocks of messages",
    ),
    *_sizes(
        "_RULED_DAY = 47_482",
        "_RULED_DAY = 47483",
        why="from 2100 on, days repeat after 400 years, from whichever day this is counted",
    ),
    *_sizes(
        "_PROBES = range(-2_272_060_800, 16_756_761_600, 86_400)",
        "_PROBES = range(-2_272_060_800, 16756761601, 86_400)",
        "_PROBES = range(-2_272_060_800, 16_756_761_600, 86401)",
        why="changes of clocks are many days apart, and each is found to the second between two probes",
    ),
    *_sizes("_MANY = 64", "_MANY = 65"),
    *_sizes(
        "_BEFORE_ALL = -(1 << 62)",
        *("_BEFORE_ALL = -(2 << 62)", "_BEFORE_ALL = -(1 << 63)"),
        why="another moment before all event times",
    ),
    Equivalent(
        "on import",
        "_SPOKEN = 2.0",
        "_SPOKEN = 3.0",
        "the longest wait for a line that an engine may have printed; it ends with the line",
    ),
    Equivalent(
        "on import",
        "EVERY = 5.0",
        "EVERY = 7.5",
        "how often memory is looked at is a matter of choice",
    ),
    Equivalent(
        "_truth",
        "alphabet.encode(values, np.zeros(len(values), dtype=np.int64), 1), "
        "alphabet.symbols_in_order[: len(edges) - 1]",
        "alphabet.encode(values, np.zeros(len(values), dtype=np.int64), 2), "
        "alphabet.symbols_in_order[: len(edges) - 1]",
        "an alphabet with bins has the same symbols in all cohorts, however many there are",
    ),
    Equivalent(
        "on import",
        "ROWS_AT_ONCE = 65_536",
        "ROWS_AT_ONCE = 65537",
        "changes only how many rows are read at a time",
    ),
    Equivalent(
        "on import",
        "_BLOCK_BYTES = 16_777_216",
        "_BLOCK_BYTES = 16777217",
        "a row of a CSV file may be a byte longer than 16 MiB",
    ),
    Equivalent(
        "SpoolReader.read",
        "while hashed.read(1 << 20):  # what follows a part that cannot be read",
        "while hashed.read(1 << 21):  # what follows a part that cannot be read",
        "changes only how much is read at a time",
    ),
    Equivalent(
        "SpoolReader.read",
        "while hashed.read(1 << 20):  # what follows a part that cannot be read",
        "while hashed.read(2 << 20):  # what follows a part that cannot be read",
        "changes only how much is read at a time",
    ),
    Equivalent(
        "on import",
        "_GLANCE = 0.1  # seconds of one poll",
        "_GLANCE = 0.15000000000000002  # seconds of one poll",
        "a poll is repeated until the records have come or the time is over",
    ),
    Equivalent(
        "on import",
        "_DIGITS = 20",
        "_DIGITS = 21",
        "more digits than the length of any body has, either way",
    ),
    Equivalent(
        "_StreamFn.process",
        "while (left := ends - time.monotonic()) > 0:",
        "while ((left := (ends - time.monotonic())) >= 0):",
        "one more poll, of no time, if the clock stands exactly at the end",
    ),
    Equivalent(
        "_advance",
        "if moment > watermark.current_watermark():",
        "if (moment >= watermark.current_watermark()):",
        "sets the watermark to what it is",
    ),
    Equivalent(
        "_wait_for_the_end",
        "while os.read(0, 1024):",
        "while os.read(0, 1025):",
        "how much is read at a time, of what nobody writes",
    ),
    Equivalent(
        "_say_the_end",
        "flush=True,",
        "flush=False,",
        "the last line of a program, whose end writes out what it printed",
    ),
    Equivalent(
        "GroupPower._of_all",
        "return math.ceil(number / self.smallest - 1e-9)",
        "return math.ceil(number / self.smallest - 1.5000000000000002e-09)",
        "a tolerance for the last digits of floats",
    ),
    Equivalent(
        "kept",
        'looking = threading.Thread(target=look, name="accounts", daemon=True)',
        'looking = threading.Thread(target=look, name="accounts", daemon=False)',
        "the block waits for the end of its thread before it is left",
    ),
    Equivalent(
        "Schemas._is_datum",
        "return False",
        "return None",
        "only whether it is true is asked",
    ),
    Equivalent(
        "on import",
        "EMPTY_PULL_SECONDS = 0.2",
        "EMPTY_PULL_SECONDS = 0.30000000000000004",
        "the longest wait of a pull for a message; it ends with the message",
    ),
    Equivalent(
        "on import",
        "_CLOSING_SECONDS = 10",
        "_CLOSING_SECONDS = 11",
        "the longest wait for calls that the grace period has ended",
    ),
    Equivalent(
        "PubsubServer.__exit__",
        "self._server.stop(grace=0.5).wait(_CLOSING_SECONDS)",
        "self._server.stop(grace=0.75).wait(_CLOSING_SECONDS)",
        "how long waiting calls may take to answer is a matter of choice",
    ),
    Equivalent(
        "_groups_of_whole",
        'reports[total_of(key)] += sign * sum(row["counts"].total for row in rows)',
        "reports[total_of(key)] -= sign * sum((row['counts'].total for row in rows))",
        "only whether the sum is 0 is asked",
    ),
    Equivalent(
        "_is_whole",
        "return False  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained",
        "return None  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained",
        "only whether it is true is asked",
    ),
    Equivalent(
        "through_time",
        'days = (rows[-1]["time"] - rows[0]["time"]) / _DAY if rows else 0.0',
        'days = (rows[-1]["time"] - rows[0]["time"]) / _DAY if rows else 1.0',
        "no rows span few days, whichever of the two numbers says so",
    ),
    Equivalent(
        "_sure",
        'return f"{100 * (1 - doubt):.1f} %" if doubt > _HARDLY_ANY else "more than 99.9 %"',
        'return f"{100 * (1 - doubt):.1f} %" if (doubt >= _HARDLY_ANY) else "more than 99.9 %"',
        "no epsilon has exactly this doubt",
    ),
    Equivalent(
        "",
        "const least = Math.ceil(Math.log10(top) - DECADES - 1e-9);",
        "const least = Math.ceil(Math.log10(top) - DECADES - 1e-10);",
        "a tolerance for the last digits of floats, a million times larger than their rounding",
    ),
    Equivalent(
        "",
        "return Array.from({ length: Math.floor(Math.log10(top) + 1e-9) - least + 1 }, (_, at) => 10 ** (least + at));",
        "return Array.from({ length: Math.floor(Math.log10(top) + 1e-10) - least + 1 }, (_, at) => 10 ** "
        "(least + at));",
        "as above",
    ),
    Equivalent(
        "",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-12);",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power > top / 4 - 1e-12);",
        "no share is exactly so much smaller than a round one",
    ),
    Equivalent(
        "",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-12);",
        "const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-13);",
        "a tolerance for the last digits of floats",
    ),
    Equivalent(
        "",
        "return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, at) => at * step);",
        "return Array.from({ length: Math.floor(top / step + 1e-10) + 1 }, (_, at) => at * step);",
        "a tolerance for the last digits of floats, a million times larger than their rounding",
    ),
    Equivalent(
        "on import",
        "_TABLE_CELLS = 4_194_304  # encoding many different values looks at a part of the table at a time",
        "_TABLE_CELLS = 4194305  # encoding many different values looks at a part of the table at a time",
        "changes only how many values are looked up at a time",
    ),
    Equivalent(
        "on import",
        "_WORDS_AT_ONCE = 65_536  # half a megabyte of words stays in the cache",
        "_WORDS_AT_ONCE = 65537  # half a megabyte of words stays in the cache",
        "changes only how many values are hashed at a time",
    ),
    Equivalent(
        "on import",
        "_PRECISE = decimal.Context(prec=50)",
        "_PRECISE = decimal.Context(prec=51)",
        "edges are rounded to four digits, of the 50 or 51 that are computed",
    ),
    Equivalent(
        "Tagged._check_background",
        "if not numbers or abs(sum(shares.values()) - 1) > _SUM_SLACK:",
        "if not numbers or (abs(sum(shares.values()) - 1) >= _SUM_SLACK):",
        "no sum of floats differs from 1 by exactly that",
    ),
    Equivalent(
        "on import",
        "_EXACT = 8  # largest number of symbols for which as many vectors are used as there are symbols",
        "_EXACT = 9  # largest number of symbols for which as many vectors are used as there are symbols",
        "orders of these matrices are powers of 2",
    ),
    Equivalent(
        "on import",
        "_TINY = 1e-18",
        "_TINY = 1.5000000000000001e-18",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "_signs",
        "rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761) % (order - 1) + 1",
        "rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761) % (order - 1) + 2",
        "other rows of the same matrix: any that are different and balanced do",
    ),
    Equivalent(
        "Side._probes",
        "typical = float(np.sqrt((of.scale**2).mean()))",
        "typical = float(np.sqrt((of.scale**3).mean()))",
        "any number: it cancels out",
    ),
    Equivalent(
        "Side._probes",
        "typical = float(np.sqrt((of.scale**2).mean()))",
        "typical = float(np.sqrt(((of.scale * 2)).mean()))",
        "any number: it cancels out",
    ),
    Equivalent(
        "_signs",
        "rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761) % (order - 1) + 1",
        "rows = np.arange(order) if order <= _EXACT else (np.arange(1, _PROBES + 1) * 2654435761 // (order - 1)) + 1",
        "other rows of the same matrix: any that are different and balanced do",
    ),
    Equivalent(
        "Client._names",
        "symbols = self._collection.mechanism.num_symbols if _has_memos(self._collection) else 1",
        "symbols = self._collection.mechanism.num_symbols if _has_memos(self._collection) else 2",
        "one name more, which no ledger of version 1 has",
    ),
    Equivalent(
        "Client._charge",
        "if limit is not None and after > limit * (1 + _ROUNDING):",
        "if limit is not None and (after >= limit * (1 + _ROUNDING)):",
        "the tolerance for rounding is met exactly by no sum of costs",
    ),
    Equivalent(
        "ClientWindow.of",
        "if not 0 < length <= _LONGEST or (timezone is not None and length % DAY):",
        "if not 1 < length <= _LONGEST or (timezone is not None and length % DAY):",
        "the smallest unit is a minute: no text has the length of a millisecond",
    ),
    Equivalent(
        "ClientWindow.start_of",
        "return self._first(range(time - self.length - DAY, time + 1), self.number_of(time))",
        "return self._first(range(time - self.length - DAY, time + 2), self.number_of(time))",
        "the first time of the window is the time itself or an earlier one",
    ),
    Equivalent(
        "on import",
        "_GRID = np.linspace(0.05, 8.2, 164)",
        "_GRID = np.linspace(0.05, 8.2, 165)",
        "more points between the same ends: intervals are nearly linear between them",
    ),
    Equivalent(
        "_Pair.weight",
        "if a is None or b is None:",
        "if (a is None and b is None):",
        "both have the same share of liars, so either both have lies or none has",
    ),
    Equivalent(
        "on import",
        "NUM_REPORTS = 3_000",
        "NUM_REPORTS = 3001",
        "a number of drawn reports, of which any is as good",
    ),
    Equivalent(
        "on import",
        "_ROUNDING, _EXACT_TO = 1e-9, 1e-12",
        "_ROUNDING, _EXACT_TO = 1.5000000000000002e-09, 1e-12",
        "a tolerance for rounding, far below any fault",
    ),
    Equivalent(
        "on import",
        "_ROUNDING, _EXACT_TO = 1e-9, 1e-12",
        "_ROUNDING, _EXACT_TO = 1.5000000000000002e-09, 1e-12",
        "a tolerance for rounding, far below any fault",
    ),
    Equivalent(
        "on import",
        "_ROUNDING, _EXACT_TO = 1e-9, 1e-12",
        "_ROUNDING, _EXACT_TO = 1e-9, 1.5e-12",
        "a tolerance for rounding, far below any fault",
    ),
    Equivalent(
        "on import",
        "_ROUNDING, _EXACT_TO = 1e-9, 1e-12",
        "_ROUNDING, _EXACT_TO = 1e-9, 1.5e-12",
        "a tolerance for rounding, far below any fault",
    ),
    Equivalent(
        "on import",
        "_ENUMERABLE = 2  # maximum number of payload bytes that can be enumerated",
        "_ENUMERABLE = 3  # maximum number of payload bytes that can be enumerated",
        "of three bytes the same is enumerated, in a minute",
    ),
    Equivalent(
        "_counts",
        "twice, groups = np.repeat(np.arange(size), 2), np.arange(2 * size) % 3 % 2",
        "twice, groups = np.repeat(np.arange(size), 2), (np.arange(2 * size) // 3) % 2",
        "another division of the reports into two groups",
    ),
    Equivalent(
        "_counts",
        "twice, groups = np.repeat(np.arange(size), 2), np.arange(2 * size) % 3 % 2",
        "twice, groups = np.repeat(np.arange(size), 2), np.arange(2 * size) % 4 % 2",
        "another division of the reports into two groups",
    ),
    Equivalent(
        "_draws",
        "if tails.min() < least:",
        "if (tails.min() <= least):",
        "no tail of these laws is exactly that",
    ),
    Equivalent(
        "_rows_of",
        "for width in np.unique(widths[widths > 0]).tolist():",
        "for width in np.unique(widths[(widths >= 0)]).tolist():",
        "rows without a bit have no bytes",
    ),
    Equivalent(
        "on import",
        "_CHUNK_BYTES = 2_097_152",
        "_CHUNK_BYTES = 2097153",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "on import",
        "_FEW_BITS = 16_384  # up to this number, adding bit by bit is faster than filling lanes",
        "_FEW_BITS = 16385  # up to this number, adding bit by bit is faster than filling lanes",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "on import",
        "_BLOCK_BITS = 1_048_576  # unpacked at once: fewer rows than the 2**24 that single precision counts",
        "_BLOCK_BITS = 1048577  # unpacked at once: fewer rows than the 2**24 that single precision counts",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "count_bits",
        "if len(payloads) * num_bits <= _FEW_BITS:",
        "if (not len(payloads) * num_bits <= _FEW_BITS):",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "count_bits",
        "if len(payloads) * num_bits <= _FEW_BITS:",
        "if (len(payloads) * num_bits < _FEW_BITS):",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "count_bits",
        "if len(payloads) * num_bits <= _FEW_BITS:",
        "if (len(payloads) * num_bits > _FEW_BITS):",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "count_bits",
        "if len(payloads) * num_bits <= _FEW_BITS:",
        "if (len(payloads) / num_bits) <= _FEW_BITS:",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "count_bits",
        "most_rows = min(_at_once(8 * num_words), _CHUNK_ROWS)",
        "most_rows = min(_at_once(9 * num_words), _CHUNK_ROWS)",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "count_bits",
        "most_groups = _at_once(2 * num_words * _LANES)  # a quarter of its bytes; each fills a row of lanes",
        "most_groups = _at_once(3 * num_words * _LANES)  # a quarter of its bytes; each fills a row of lanes",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "_at_once",
        "return max(1, _CHUNK_BYTES // num_bytes)",
        "return max(2, _CHUNK_BYTES // num_bytes)",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "_at_once",
        "return max(1, _CHUNK_BYTES // num_bytes)",
        "return max(1, (_CHUNK_BYTES * num_bytes))",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "count_pairs",
        "ends, step = np.cumsum(sizes), max(1, _BLOCK_BITS // num_bits)",
        "ends, step = np.cumsum(sizes), max(2, _BLOCK_BITS // num_bits)",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "count_pairs",
        "ends, step = np.cumsum(sizes), max(1, _BLOCK_BITS // num_bits)",
        "ends, step = np.cumsum(sizes), max(1, (_BLOCK_BITS * num_bits))",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "_add_vertically",
        "k = len(stack) // 3 or 1",
        "k = len(stack) // 4 or 1",
        "changes only how many lanes are added at a time: as many additions, and the same digits",
    ),
    Equivalent(
        "on import",
        "_SMALL = 32_768",
        "_SMALL = 32769",
        "chooses between two forms of counts, which are equal",
    ),
    Equivalent(
        "on import",
        "_MAX_NUMBERS = 4_194_304",
        "_MAX_NUMBERS = 4194305",
        "changes only how much is counted at a time",
    ),
    Equivalent(
        "_in_full",
        "here = slice(None) if last - first == len(shapes) else (groups >= first) & (groups < last)",
        "here = slice(None) if last - first == len(shapes) else (groups >= first) & ((groups <= last))",
        "numbers behind the last group of the list are not read",
    ),
    Equivalent(
        "count_cells",
        "if lengths.sum() <= _SMALL:",
        "if (lengths.sum() < _SMALL):",
        "chooses between two forms of counts, which are equal",
    ),
    Equivalent(
        "NarrowTable.add",
        "if self._cells.dtype != _WIDEST and (lowest < 0 or self._most + most > np.iinfo(self._cells.dtype).max):",
        "if (self._cells.dtype != _WIDEST or (lowest < 0 or self._most + most > np.iinfo(self._cells.dtype).max)):",
        "computes the largest cell anew where that was not needed",
    ),
    Equivalent(
        "on import",
        "_NONE = np.zeros(0, dtype=np.int64)",
        "_NONE = np.zeros(1, dtype=np.int64)",
        "the shape and the patterns alone are read of it",
    ),
    Equivalent(
        "split_counts",
        "one_shape = len(shapes) > 0 and (shapes == shapes[0]).all()",
        "one_shape = (len(shapes) <= 0) and (shapes == shapes[0]).all()",
        "chooses between two ways to list the shapes",
    ),
    Equivalent(
        "_longer",
        "normal = raw / np.sqrt(np.maximum(solution.own.null + np.square(solution.jump) / 2, 1e-300))",
        "normal = raw / np.sqrt(np.maximum(solution.own.null + np.square(solution.jump) / 2, 1.5e-300))",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "Grammar.followers",
        "if len(tail) >= self._longest:",
        "if (len(tail) > self._longest):",
        "a tail as long as the longest token is the beginning of none",
    ),
    Equivalent(
        "on import",
        "_ROWS = 128  # parents that are looked up at a time; they share one table of sums",
        "_ROWS = 129  # parents that are looked up at a time; they share one table of sums",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "_fit",
        "gram.flat[:: len(gram) + 1] *= 1 + 1e-9",
        "gram.flat[:: len(gram) + 1] *= 1 + 1.5000000000000002e-09",
        "any tiny number makes equal columns distinguishable",
    ),
    Equivalent(
        "_fit",
        "return frequencies, np.sqrt(np.maximum(np.diag(inverse), 1e-300))",
        "return frequencies, np.sqrt(np.maximum(np.diag(inverse), 1.5e-300))",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "_fit",
        "inverse = linalg.cho_solve(linalg.cho_factor(gram, lower=True), np.eye(len(gram)))",
        "inverse = linalg.cho_solve(linalg.cho_factor(gram, lower=False), np.eye(len(gram)))",
        "the other triangle of a symmetric matrix",
    ),
    Equivalent(
        "on import",
        "_ROWS = 128  # parents whose prefixes have their beliefs in memory together",
        "_ROWS = 129  # parents whose prefixes have their beliefs in memory together",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "Search._striking",
        "return dict(zip(scores, np.exp(np.minimum(logs - beliefs, 700.0)).tolist()))",
        "return dict(zip(scores, np.exp(np.minimum(logs - beliefs, 1050.0)).tolist()))",
        "numbers of false positives that are far beyond all limits",
    ),
    Equivalent(
        "in_a_line",
        "found = figure_rows(estimate.numbers, estimate.confidence, smooth=False)",
        "found = figure_rows(estimate.numbers, estimate.confidence, smooth=True)",
        "fits a curve that is not shown",
    ),
    Equivalent(
        "_chart_of_bins",
        "[median] = numbers.figures(quantiles=[0.5], confidence=estimate.confidence, smooth=False).quantiles",
        "[median] = numbers.figures(quantiles=[0.5], confidence=estimate.confidence, smooth=True).quantiles",
        "fits a curve that is not shown",
    ),
    Equivalent(
        "EmpiricalBayes._decode_each",
        "if many < 1:",
        "if (many <= 1):",
        "adds the shares of few values with the weight 0",
    ),
    Equivalent(
        "EmpiricalBayes._decode_each",
        "if many < 1:",
        "if many < 2:",
        "adds the shares of few values with the weight 0",
    ),
    Equivalent(
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "on import",
        "_MOST_STEPS = 60",
        "_MOST_STEPS = 61",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "on import",
        "_LONGEST_STEP = 3.0  # maximum change of an entry of eta in one step",
        "_LONGEST_STEP = 4.5  # maximum change of an entry of eta in one step",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "while at < value and np.abs(step).max() > _GAIN**2:",
        "while (at <= value) and np.abs(step).max() > _GAIN**2:",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "while at < value and np.abs(step).max() > _GAIN**2:",
        "while at < value and (np.abs(step).max() >= _GAIN ** 2):",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "while at < value and np.abs(step).max() > _GAIN**2:",
        "while at < value and np.abs(step).max() > (_GAIN * 2):",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "while at < value and np.abs(step).max() > _GAIN**2:",
        "while at < value and np.abs(step).max() > _GAIN**3:",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "step = step / 2",
        "step = step / 3",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "if at < value:",
        "if (at <= value):",
        "steps to the same maximum",
    ),
    Equivalent(
        "Posterior.maximize",
        "if gain < _GAIN:",
        "if (gain <= _GAIN):",
        "steps to the same maximum",
    ),
    Equivalent(
        "fit_scales",
        "if evidence < max(fit.evidence for fit in fits) - _NEGLIGIBLE - math.log(scales[-1] / scale):",
        "if (evidence <= max((fit.evidence for fit in fits)) - _NEGLIGIBLE - math.log(scales[-1] / scale)):",
        "evidence exactly at the limit",
    ),
    Equivalent(
        "on import",
        "_NO_VARIANCE, _DIGITS = 1e-9, 12  # where the sum of unbiased frequencies is 1 but for rounding",
        "_NO_VARIANCE, _DIGITS = 1.5000000000000002e-09, 12  # where the sum of unbiased frequencies is 1 "
        "but for rounding",
        "the sum of frequencies has no variance, or one above 1",
    ),
    Equivalent(
        "on import",
        "_NO_VARIANCE, _DIGITS = 1e-9, 12  # where the sum of unbiased frequencies is 1 but for rounding",
        "_NO_VARIANCE, _DIGITS = 1e-9, 13  # where the sum of unbiased frequencies is 1 but for rounding",
        "rounding errors are smaller, and sums that are not 1 differ by more",
    ),
    Equivalent(
        "on import",
        "SHORT = 96",
        "SHORT = 97",
        "chooses between two ways to the same means",
    ),
    Equivalent(
        "on import",
        "_FEW = 3  # number of lists up to which one after the other is faster",
        "_FEW = 4  # number of lists up to which one after the other is faster",
        "chooses between two ways to the same means",
    ),
    Equivalent(
        "on import",
        "_ROUND = 8  # numbers of atoms are rounded up to a multiple of this, so that more lists have the same shape",
        "_ROUND = 9  # numbers of atoms are rounded up to a multiple of this, so that more lists have the same shape",
        "adds atoms without weight",
    ),
    Equivalent(
        "on import",
        "_TOGETHER = 131_072  # maximum size of the kernels that are solved at once: they fit into the cache",
        "_TOGETHER = 131073  # maximum size of the kernels that are solved at once: they fit into the cache",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "_levels",
        "unfinished = unfinished & (np.abs(step - level) > SAME * level) & (high - low > SAME * high)",
        "unfinished = unfinished & (np.abs(step - level) > SAME * level) & ((high + low) > SAME * high)",
        "goes on where steps no longer move the level",
    ),
    Equivalent(
        "keep_significant",
        "if missing < 0 or kept.all():",
        "if (missing <= 0) or kept.all():",
        "there is nothing to share out",
    ),
    Equivalent(
        "on import",
        "_MOST_STEPS = 100  # of Newton's method, which needs six or seven",
        "_MOST_STEPS = 101  # of Newton's method, which needs six or seven",
        "so many steps are never needed",
    ),
    Equivalent(
        "on import",
        "_NEAR = 1e-9  # in logits",
        "_NEAR = 1.5000000000000002e-09  # in logits",
        "Newton's method squares the distance with every step: the last one is far below either",
    ),
    Equivalent(
        "on import",
        "_AT_MODE, _ROUNDED = 1e-3, 5e-7",
        "_AT_MODE, _ROUNDED = 0.0015, 5e-7",
        "near the mode the formula and its limit agree",
    ),
    Equivalent(
        "on import",
        "_AT_MODE, _ROUNDED = 1e-3, 5e-7",
        "_AT_MODE, _ROUNDED = 1e-3, 7.5e-07",
        "near the mode the formula and its limit agree",
    ),
    Equivalent(
        "on import",
        "_LEAST_CURVATURE = 1e-18",
        "_LEAST_CURVATURE = 1.5000000000000001e-18",
        "stands for 0, by which nothing is divided",
    ),
    Equivalent(
        "on import",
        "_LEAST_ROOT = 1e-150",
        "_LEAST_ROOT = 1.5e-150",
        "stands for 0, by which nothing is divided",
    ),
    Equivalent(
        "TwoStage.exact_ratio",
        "missing = [rows[d][d] * rate + rows[d][0] * (1 - rate) for rate in map(Fraction, self.missing_rates)]",
        "missing = [rows[d][d] * rate + rows[d][1] * (1 - rate) for rate in map(Fraction, self.missing_rates)]",
        "all answers are reported as missing alike",
    ),
    Equivalent(
        "TwoStage.epsilon_if_state_is_value",
        "own = [rate * rows[0][d] + (1 - rate) * rows[0][0] for rate in rates]",
        "own = [rate * rows[1][d] + (1 - rate) * rows[0][0] for rate in rates]",
        "a missing value is reported as each answer alike",
    ),
    Equivalent(
        "TwoStage.epsilon_if_state_is_value",
        "other = [rate * rows[0][d] + (1 - rate) * rows[0][1] for rate in rates]",
        "other = [rate * rows[1][d] + (1 - rate) * rows[0][1] for rate in rates]",
        "a missing value is reported as each answer alike",
    ),
    Equivalent(
        "TwoStage.has_signal",
        "return rows[-1][-1] > rows[-1][0] and rows[0][0] > rows[0][1]",
        "return rows[-1][-1] > rows[-1][1] and rows[0][0] > rows[0][1]",
        "all answers are reported as missing alike",
    ),
    Equivalent(
        "on import",
        "_STEPS = 30  # of Newton's method, which needs three to five; bisection where it fails",
        "_STEPS = 31  # of Newton's method, which needs three to five; bisection where it fails",
        "so many steps are never needed",
    ),
    Equivalent(
        "on import",
        "_CLOSE = 1e-13",
        "_CLOSE = 1.5000000000000002e-13",
        "Newton's method squares the distance with every step: the last one is far below either",
    ),
    Equivalent(
        "checked_priors",
        "if not numbers or not all(0 <= share <= 1 for share in row) or abs(sum(row) - 1) > _SUM_SLACK:",
        "if not numbers or not all(0 <= share <= 1 for share in row) or (abs(sum(row) - 1) >= _SUM_SLACK):",
        "no sum of floats differs from 1 by exactly that",
    ),
    Equivalent(
        "on import",
        "MANY_REPORTS = 1_000",
        "MANY_REPORTS = 1001",
        "chooses between two ways to draw one distribution; the specified words of single reports stay",
    ),
    Equivalent(
        "on import",
        "_RARE = 0.05  # largest rate for which sixteen digits nearly always decide wide patterns",
        "_RARE = 0.07500000000000001  # largest rate for which sixteen digits nearly always decide wide patterns",
        "chooses between two widths of patterns, which have the same distribution",
    ),
    Equivalent(
        "on import",
        "_CELLS = 65_536",
        "_CELLS = 65537",
        "one more cell than sixteen digits can name",
    ),
    Equivalent(
        "on import",
        "_TAIL = 4_096  # patterns with a joint probability below 1 / _TAIL are not in the table",
        "_TAIL = 4097  # patterns with a joint probability below 1 / _TAIL are not in the table",
        "rare patterns are decided by further digits wherever the table ends",
    ),
    Equivalent(
        "on import",
        "_PIECES_AT_ONCE = 131_072",
        "_PIECES_AT_ONCE = 131073",
        "changes only how much is drawn at a time",
    ),
    Equivalent(
        "noise_bits",
        "return pattern_table(numerator, 16 if min(rate, 1 - rate) <= _RARE else 8).draw(source, num_rows, num_bits)",
        "return pattern_table(numerator, 16 if (min(rate, 1 - rate) < _RARE) else 8).draw(source, num_rows, num_bits)",
        "chooses between two widths of patterns, which have the same distribution",
    ),
    Equivalent(
        "noise_bits",
        "return pattern_table(numerator, 16 if min(rate, 1 - rate) <= _RARE else 8).draw(source, num_rows, num_bits)",
        "return pattern_table(numerator, 16 if (min(rate, 1 - rate) > _RARE) else 8).draw(source, num_rows, num_bits)",
        "chooses between two widths of patterns, which have the same distribution",
    ),
    Equivalent(
        "noise_bits",
        "return pattern_table(numerator, 16 if min(rate, 1 - rate) <= _RARE else 8).draw(source, num_rows, num_bits)",
        "return pattern_table(numerator, 16 if min(rate, (1 + rate)) <= _RARE else 8).draw(source, num_rows, num_bits)",
        "chooses between two widths of patterns, which have the same distribution",
    ),
    Equivalent(
        "noise_bits",
        "return pattern_table(numerator, 16 if min(rate, 1 - rate) <= _RARE else 8).draw(source, num_rows, num_bits)",
        "return pattern_table(numerator, 16 if min(rate, 2 - rate) <= _RARE else 8).draw(source, num_rows, num_bits)",
        "chooses between two widths of patterns, which have the same distribution",
    ),
    Equivalent(
        "PatternTable._build",
        "if (end_of_all - end) * _TAIL < end_of_all:",
        "if ((end_of_all - end) * _TAIL <= end_of_all):",
        "rare patterns are decided by further digits wherever the table ends",
    ),
    Equivalent(
        "PatternTable._build",
        "if (end_of_all - end) * _TAIL < end_of_all:",
        "if ((end_of_all - end) / _TAIL) < end_of_all:",
        "rare patterns are decided by further digits wherever the table ends",
    ),
    Equivalent(
        "on import",
        "_CHUNK = 32_768  # reports whose temporaries stay in the cache",
        "_CHUNK = 32769  # reports whose temporaries stay in the cache",
        "changes only how much is drawn or counted at a time",
    ),
    Equivalent(
        "on import",
        "_DENSE_CELLS = 16_777_216  # maximum size of a dense support matrix that is processed in one piece",
        "_DENSE_CELLS = 16777217  # maximum size of a dense support matrix that is processed in one piece",
        "changes only how much is looked at at a time",
    ),
    Equivalent(
        "on import",
        "_SMALLEST = 1e-300",
        "_SMALLEST = 1.5e-300",
        "stands for 0, by which nothing is divided",
    ),
    Equivalent(
        "on import",
        "_CHUNK_WORDS = 131_072",
        "_CHUNK_WORDS = 131073",
        "changes only how much is drawn at a time",
    ),
    Equivalent(
        "on import",
        "_MOST_SHORT_KEYS = 4_096",
        "_MOST_SHORT_KEYS = 4097",
        "chooses between two lengths of keys, which draw the same sets",
    ),
    Equivalent(
        "on import",
        "_ROOT_DIGITS = 1 << 200  # square roots of rationals are computed to 60 digits, so that all machines agree",
        "_ROOT_DIGITS = 2 << 200  # square roots of rationals are computed to 60 digits, so that all machines agree",
        "the root is rounded to 32 bits",
    ),
    Equivalent(
        "on import",
        "_ROOT_DIGITS = 1 << 200  # square roots of rationals are computed to 60 digits, so that all machines agree",
        "_ROOT_DIGITS = 1 << 201  # square roots of rationals are computed to 60 digits, so that all machines agree",
        "the root is rounded to 32 bits",
    ),
    Equivalent(
        "Groups.of",
        "logs = np.floor(np.log(np.maximum(frequencies, 1e-300)) / _SMALL_STEP)",
        "logs = np.floor(np.log(np.maximum(frequencies, 1.5e-300)) / _SMALL_STEP)",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "_folded",
        "ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 30)",
        "ratios = np.clip(means / np.maximum(deviations, 1.5e-300), -30, 30)",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "_folded",
        "ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 30)",
        "ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 31)",
        "the density and the error function of 30 are 0 and 1",
    ),
    Equivalent(
        "_coarse",
        "logs = np.log(np.maximum(atoms, 1e-300))",
        "logs = np.log(np.maximum(atoms, 1.5e-300))",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "on import",
        "_NEAR_ZERO = 1e-300",
        "_NEAR_ZERO = 1.5e-300",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "OpenQuestion._shapes",
        "candidates, listed = (Groups.of(part / max(part.sum(), 1e-300)) for part in raw)",
        "candidates, listed = (Groups.of(part / max(part.sum(), 1.5e-300)) for part in raw)",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "on import",
        "_STEPS = 100",
        "_STEPS = 101",
        "so many steps are never needed",
    ),
    Equivalent(
        "on import",
        "_STEPS = 100",
        "_STEPS = 101",
        "the share no longer moves after a few steps",
    ),
    Equivalent(
        "on import",
        "_HALVINGS = 40",
        "_HALVINGS = 41",
        "so many halvings are never needed",
    ),
    Equivalent(
        "on import",
        "_CLOSE = 1e-10  # of the squared length of a step, in standard errors",
        "_CLOSE = 1.5e-10  # of the squared length of a step, in standard errors",
        "a step of a hundred-thousandth of a standard error is not seen",
    ),
    Equivalent(
        "on import",
        "_ROUNDING = 1e-12  # of a log-likelihood",
        "_ROUNDING = 1.5e-12  # of a log-likelihood",
        "a tolerance for rounding",
    ),
    Equivalent(
        "_curve",
        "whole = max(float(mechanism.variances(frequencies)[symbol]), 1e-300)",
        "whole = max(float(mechanism.variances(frequencies)[symbol]), 1.5e-300)",
        "stands for 0, by which 0 is divided",
    ),
    Equivalent(
        "on import",
        "_CHUNK_WORDS = 32_768  # 256 KiB of words, which fit into the cache",
        "_CHUNK_WORDS = 32769  # 256 KiB of words, which fit into the cache",
        "changes only how many reports are drawn at a time",
    ),
    Equivalent(
        "on import",
        "_LEFT_OUT = 1e-18  # probability that a sum over a binomial distribution omits at each end",
        "_LEFT_OUT = 1.5000000000000001e-18  # probability that a sum over a binomial distribution omits at each end",
        "is added to the p-value, of which it is no part that could be seen",
    ),
    Equivalent(
        "on import",
        "_TERMS = 4096  # maximum number of terms of that sum",
        "_TERMS = 4097  # maximum number of terms of that sum",
        "one term more in a sum of thousands",
    ),
    Equivalent(
        "on import",
        "_SMALLEST = 1e-300",
        "_SMALLEST = 1.5e-300",
        "stands for 0, of which no logarithm is taken",
    ),
    Equivalent(
        "_together",
        "return max(1, min(_MOST_TOGETHER, _CELLS // max(size * len(DRIFTS), 1)))",
        "return max(1, min(_MOST_TOGETHER, _CELLS // max(size * len(DRIFTS), 2)))",
        "a block of no values may have any size",
    ),
    Equivalent(
        "_found",
        "lasting = lasts > alone",
        "lasting = (lasts >= alone)",
        "odds are equal only where neither kind of change is possible",
    ),
    Equivalent(
        "on import",
        "_LEAST_KEPT = 1e-12",
        "_LEAST_KEPT = 1.5e-12",
        "a gain of nearly 1 forgets all windows before",
    ),
    Equivalent(
        "on import",
        "_TOGETHER = 16  # windows whose likelihoods are computed at once",
        "_TOGETHER = 17  # windows whose likelihoods are computed at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_FACTORS = 8  # variances whose product fits into a 64-bit float, which saves logarithms",
        "_FACTORS = 9  # variances whose product fits into a 64-bit float, which saves logarithms",
        "products of nine variances fit into a 64-bit float too",
    ),
    Equivalent(
        "fit",
        "if len(law.shares) > FITTED:",
        "if (len(law.shares) >= FITTED):",
        "all values, in another order",
    ),
    Equivalent(
        "which_moved",
        "rates = np.minimum(np.minimum.reduce(tails, axis=1, initial=1) * size / sudden, 1 / np.maximum(lasts, 1))",
        "rates = np.minimum(np.minimum.reduce(tails, axis=1, initial=2) * size / sudden, 1 / np.maximum(lasts, 1))",
        "the rate is at most 1 beside it, and a tail is a probability",
    ),
    Equivalent(
        "on import",
        "_BLOCK = 1024  # values whose likelihoods are computed at once",
        "_BLOCK = 1025  # values whose likelihoods are computed at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "_likely",
        "excess.append(float((weight[seen] * variances / law.shares[seen]).sum() / max(weight[seen].sum(), 1e-300)))",
        "excess.append(float((weight[seen] * variances / law.shares[seen]).sum() / max(weight[seen].sum(), 1.5e-300)))",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "_grid",
        "fine = np.arange(steps[0], steps[-1] + 0.25, 0.5)",
        "fine = np.arange(steps[0], steps[-1] + 0.375, 0.5)",
        "ends at the same point of the grid",
    ),
    Equivalent(
        "on import",
        "_BLOCK = 1024  # values that are whitened at once",
        "_BLOCK = 1025  # values that are whitened at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_BLOCK = 1024  # values that are smoothed at once",
        "_BLOCK = 1025  # values that are smoothed at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "_around",
        "low = np.where(apart > 0, np.minimum(means - half, series.raw - own), means - half)",
        "low = np.where((apart >= 0), np.minimum(means - half, series.raw - own), means - half)",
        "a window exactly where its interval begins to extend",
    ),
    Equivalent(
        "_around",
        "high = np.where(apart > 0, np.maximum(means + half, series.raw + own), means + half)",
        "high = np.where((apart >= 0), np.maximum(means + half, series.raw + own), means + half)",
        "a window exactly where its interval begins to extend",
    ),
    Equivalent(
        "on import",
        "_UNSEEN = KIND(1e8)  # variance of a missing estimate",
        "_UNSEEN = KIND(150000000.0)  # variance of a missing estimate",
        "a window without an estimate says nothing with either",
    ),
    Equivalent(
        "on import",
        "_DENSE_BUCKETS = 24  # with fewer buckets a dense product is faster than summing over collisions",
        "_DENSE_BUCKETS = 25  # with fewer buckets a dense product is faster than summing over collisions",
        "chooses between two ways to the same matrix",
    ),
    Equivalent(
        "on import",
        "_CHUNK_CELLS = 16_000_000",
        "_CHUNK_CELLS = 16000001",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_ROWS = 64  # rows of a Gram matrix that a thread fills at a time",
        "_ROWS = 65  # rows of a Gram matrix that a thread fills at a time",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_REACH = 8.0  # standard errors: densities beyond this are below the precision of the weights",
        "_REACH = 12.0  # standard errors: densities beyond this are below the precision of the weights",
        "adds atoms of which the likelihood is below the precision of weights",
    ),
    Equivalent(
        "on import",
        "_DENSE = 16_384  # maximum size of a kernel for which products with the full matrix are faster than "
        "with the sparse one",
        "_DENSE = 16385  # maximum size of a kernel for which products with the full matrix are faster than "
        "with the sparse one",
        "chooses between two ways to the same product",
    ),
    Equivalent(
        "on import",
        "TRIES = 60  # steps of Newton's method, which needs about five; bisection where it fails",
        "TRIES = 61  # steps of Newton's method, which needs about five; bisection where it fails",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "on import",
        "SAME = 1e-14",
        "SAME = 1.5e-14",
        "stops at the same level up to rounding",
    ),
    Equivalent(
        "on import",
        "LEAST = 1e-300",
        "LEAST = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "binomial_logs",
        "rates = np.clip(rates, LEAST, 1 - 1e-16)",
        "rates = np.clip(rates, LEAST, 1 - 1.5e-16)",
        "the same number: the largest below 1",
    ),
    Equivalent(
        "_most_likely",
        "whole: Any = kernel.toarray() if math.prod(kernel.shape) <= _DENSE else kernel",
        "whole: Any = kernel.toarray() if (math.prod(kernel.shape) < _DENSE) else kernel",
        "chooses between two ways to the same product",
    ),
    Equivalent(
        "_most_likely",
        "whole: Any = kernel.toarray() if math.prod(kernel.shape) <= _DENSE else kernel",
        "whole: Any = kernel.toarray() if (math.prod(kernel.shape) > _DENSE) else kernel",
        "chooses between two ways to the same product",
    ),
    Equivalent(
        "on import",
        "_ROWS = 4096  # values per block",
        "_ROWS = 4097  # values per block",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_STEPS = 60  # of Newton's method, which needs about five; bisection where it fails",
        "_STEPS = 61  # of Newton's method, which needs about five; bisection where it fails",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "tail",
        "if x >= float(law.means.max(axis=1).sum()) * (1 - 1e-9):",
        "if (x > float(law.means.max(axis=1).sum()) * (1 - 1e-09)):",
        "a sum exactly at the limit of a rounding error",
    ),
    Equivalent(
        "_Law.tilt",
        "step = step if low < step < min(high, 4 * t) else min((low + high) / 2, 2 * t)",
        "step = step if (low <= step < min(high, 4 * t)) else min((low + high) / 2, 2 * t)",
        "a step exactly to the end of the bracket",
    ),
    Equivalent(
        "_Law.tilt",
        "step = step if low < step < min(high, 4 * t) else min((low + high) / 2, 2 * t)",
        "step = step if (low < step <= min(high, 4 * t)) else min((low + high) / 2, 2 * t)",
        "a step exactly to the end of the bracket",
    ),
    Equivalent(
        "_ends",
        "ends = left / np.where(left > 0, tilted, 1)  # below 0 there are no own reports",
        "ends = left / np.where((left >= 0), tilted, 1)  # below 0 there are no own reports",
        "0 divided by either number is 0",
    ),
    Equivalent(
        "on import",
        "_ROUNDS = 6  # of reweighting, which converges in two or three",
        "_ROUNDS = 7  # of reweighting, which converges in two or three",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "on import",
        "_BLOCK = 256  # rows that are copied at a time",
        "_BLOCK = 257  # rows that are copied at a time",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "solver",
        "system = gram + np.trace(gram) / size**2 if complete else gram  # leaves minima with sum(p) = 1 unchanged",
        "system = gram + np.trace(gram) / (size * 2) if complete else gram  # leaves minima with sum(p) = 1 unchanged",
        "adds a positive number to all entries, which the sum of 1 makes a constant of the loss",
    ),
    Equivalent(
        "on import",
        "_SMALLEST = 1e-300",
        "_SMALLEST = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "on import",
        "_ENOUGH = 1e-4  # minimum share of the increase predicted by the gradient that a long step must "
        "achieve (Armijo)",
        "_ENOUGH = 0.00015000000000000001  # minimum share of the increase predicted by the gradient that a "
        "long step must achieve (Armijo)",
        "steps to the same maximum",
    ),
    Equivalent(
        "on import",
        "_SHORTER, _TRIALS = 0.25, 4  # factor by which a long step is shortened, and maximum number of times",
        "_SHORTER, _TRIALS = 0.375, 4  # factor by which a long step is shortened, and maximum number of times",
        "steps to the same maximum",
    ),
    Equivalent(
        "on import",
        "_SHORTER, _TRIALS = 0.25, 4  # factor by which a long step is shortened, and maximum number of times",
        "_SHORTER, _TRIALS = 0.25, 5  # factor by which a long step is shortened, and maximum number of times",
        "steps to the same maximum",
    ),
    Equivalent(
        "maximize",
        "metric = np.maximum(curvature, curvature.max() * 1e-12)",
        "metric = np.maximum(curvature, curvature.max() * 1.5e-12)",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "_suits_message_passing",
        "equal_cohorts = sizes.sum() ** 2 / max((sizes**2).sum(), 1.0)",
        "equal_cohorts = sizes.sum() ** 2 / max((sizes**2).sum(), 1.5)",
        "fewer than sixteen cohorts in any case",
    ),
    Equivalent(
        "_converge",
        "bound = max(given.mass, 1e-12) / max(buckets.num_hashes * buckets.num_unknowns, 1)",
        "bound = max(given.mass, 1.5e-12) / max(buckets.num_hashes * buckets.num_unknowns, 1)",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "on import",
        "_NEWTON_STEPS = 50",
        "_NEWTON_STEPS = 51",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "on import",
        "_ENOUGH = 1e-9  # relative to the degrees of freedom",
        "_ENOUGH = 1.5000000000000002e-09  # relative to the degrees of freedom",
        "stops at the same number up to rounding",
    ),
    Equivalent(
        "Observation.plausible",
        "scaled: np.ndarray = self.mass * positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)",
        "scaled: np.ndarray = self.mass * positive / np.maximum(positive.sum(axis=1, keepdims=True), 1.5e-300)",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "on import",
        "_BLOCK = 32_768  # unknowns that are looked up at a time, so that their sums stay in the cache",
        "_BLOCK = 32769  # unknowns that are looked up at a time, so that their sums stay in the cache",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_BUILD_CELLS = 4_000_000  # cells that are hashed at a time",
        "_BUILD_CELLS = 4000001  # cells that are hashed at a time",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "PackedBuckets.of_values",
        "step = max(1, _BUILD_CELLS // columns)  # blocks that fit into the cache",
        "step = max(2, _BUILD_CELLS // columns)  # blocks that fit into the cache",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "on import",
        "_SMALLEST = 1e-10  # relative to the sum of variances; a smaller variance of their sum is a rounding error",
        "_SMALLEST = 1.5e-10  # relative to the sum of variances; a smaller variance of their sum is a rounding error",
        "rounding errors are far below, and variances far above",
    ),
    Equivalent(
        "_shares",
        "shares[-1] = np.maximum(shares[-1], 1e-300)",
        "shares[-1] = np.maximum(shares[-1], 1.5e-300)",
        "shares of the last part alone are 1, however small its number",
    ),
    *_ways(
        "_distinct",
        "if size < 4 * len(numbers) + 1024:  # a small table of all is faster than sorting",
        ("size < 4 * len(numbers) + 1024", "(size <= 4 * len(numbers) + 1024)"),
        ("4 * len(numbers) + 1024", "(4 * len(numbers) - 1024)"),
        ("4 * len(numbers)", "(4 / len(numbers))"),
        ("4 *", "5 *"),
        ("1024", "1025"),
    ),
    Equivalent(
        "expected_l1",
        "counted = np.clip(mechanism.response(np.asarray(frequencies, dtype=np.float64)), 0, 1)",
        "counted = np.clip(mechanism.response(np.asarray(frequencies, dtype=np.float64)), 0, 2)",
        "rates are at most 1 but for rounding",
    ),
    Equivalent(
        "on import",
        "_HALVINGS = 60",
        "_HALVINGS = 61",
        "54 halvings reach the last digit of numbers from 0 to 1",
    ),
    Equivalent(
        "need_of_liars",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 2 / alphabet.num_symbols)) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "need_of_liars",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, (1 * alphabet.num_symbols))) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "on import",
        '_FINE = {"xatol": 1e-13}',
        '_FINE = {"xatol": 1.5000000000000002e-13}',
        "changes the thirteenth digit of a maximum that is flat",
    ),
    Equivalent(
        "agreement_of",
        "return _together(tuple(part.model for part in parts), parts[0].alone.values).agreement(raw, plausible, sizes)",
        "return _together(tuple(part.model for part in parts), parts[1].alone.values).agreement(raw, plausible, sizes)",
        "all versions, two or more, are asked for the same values in one order",
    ),
    Equivalent(
        "VersionWeights.of",
        "high = np.where(_loss(_weights(even, worst, low), ratios) <= limit, 0.0, 1.0)",
        "high = np.where((_loss(_weights(even, worst, low), ratios) < limit), 0.0, 1.0)",
        "a loss of exactly 1 is that of one version alone, whose weight is 1 with any caution",
    ),
    Equivalent(
        "VersionWeights.of",
        "good = _loss(_weights(even, worst, middle), ratios) <= limit",
        "good = (_loss(_weights(even, worst, middle), ratios) < limit)",
        "a loss of exactly 1 is that of one version alone, whose weight is 1 with any caution",
    ),
    Equivalent(
        "_weights",
        "precisions: np.ndarray = 1 / ((1 - caution) * even + caution * worst)",
        "precisions: np.ndarray = 2 / ((1 - caution) * even + caution * worst)",
        "the weights are divided by their sum",
    ),
    Equivalent(
        "VersionedQuestion.__post_init__",
        "if collection.alphabet.redistribution(np.full(size, 1 / size)) is not None:",
        "if collection.alphabet.redistribution(np.full(size, 2 / size)) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "VersionedQuestion.__post_init__",
        "if collection.alphabet.redistribution(np.full(size, 1 / size)) is not None:",
        "if collection.alphabet.redistribution(np.full(size, (1 * size))) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "on import",
        "_READ_BYTES = 1 << 20",
        "_READ_BYTES = 1 << 21",
        "changes only how much is read at a time",
    ),
    Equivalent(
        "on import",
        "_READ_BYTES = 1 << 20",
        "_READ_BYTES = 2 << 20",
        "changes only how much is read at a time",
    ),
    Equivalent(
        "on import",
        "_PADDING = 64  # zero bytes after the messages, so that reading past an end is harmless",
        "_PADDING = 65  # zero bytes after the messages, so that reading past an end is harmless",
        "reads past an end need 35 bytes",
    ),
    Equivalent(
        "MessageDecoder._violations",
        "if self._gate.early_by(highest, first) > 0:  # else none is too early, and mostly none is",
        "if (self._gate.early_by(highest, first) >= 0):  # else none is too early, and mostly none is",
        "looks at each report where none can be too early",
    ),
    Equivalent(
        "MessageDecoder._violations",
        "if self._gate.late_by(lowest, last) > 0:",
        "if (self._gate.late_by(lowest, last) >= 0):",
        "looks at each report where none can be too old",
    ),
    Equivalent(
        "MessageDecoder._violations",
        "if lowest < MIN_EVENT_TIME or highest >= MAX_EVENT_TIME:",
        "if (lowest <= MIN_EVENT_TIME) or highest >= MAX_EVENT_TIME:",
        "looks at each time where none can be out of range",
    ),
    Equivalent(
        "on import",
        "_FRAME_BYTES = 1 << 10",
        "_FRAME_BYTES = 1 << 11",
        "packed messages of files of many reports are a little shorter",
    ),
    Equivalent(
        "on import",
        "_FRAME_BYTES = 1 << 10",
        "_FRAME_BYTES = 2 << 10",
        "packed messages of files of many reports are a little shorter",
    ),
    Equivalent(
        "_digits",
        "return max(4, 3 + math.floor(math.log10(max(abs(number) / width, 1))))",
        "return max(4, 3 + math.floor(math.log10(max(abs(number) / width, 2))))",
        "the logarithms of 1 and of 2 are both rounded down to 0",
    ),
    Equivalent(
        "number_reports",
        "return []",
        "return None",
        "only whether there are any is asked",
    ),
    Equivalent(
        "Neighbours.of",
        "cells[2] = np.where(np.isnan(cells[2]) & ~np.isnan(cells[0]), 0, cells[2])",
        "cells[2] = np.where(np.isnan(cells[2]) & ~np.isnan(cells[1]), 0, cells[2])",
        "an entry has its raw share and its standard error, or neither",
    ),
)

_REASONS = {each[:3]: each.why for each in EQUIVALENTS}


def key_of(mutant: Mutant, source: bytes) -> tuple[str, str, str]:
    """What names a mutant: its place may move."""
    return (mutant.function, *mutant.lines(source))


def reason_of(mutant: Mutant, source: bytes) -> str | None:
    """Why a mutant of this source is the same program; None if it is not in the list."""
    return _REASONS.get(key_of(mutant, source))
