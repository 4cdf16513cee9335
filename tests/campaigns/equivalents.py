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


_AT_A_TIME = "changes only how much is done at a time, and so time and memory: the results are the same"


def _sizes(path: str, old: str, *changed: str, why: str = _AT_A_TIME) -> tuple[Equivalent, ...]:
    """Other sizes in a line that runs on import."""
    return tuple(Equivalent(path, "on import", old, new, why) for new in changed)


def _ways(path: str, function: str, old: str, *changed: tuple[str, str]) -> tuple[Equivalent, ...]:
    """Another limit between two ways to the same result, one of which is faster below it."""
    why = "chooses between two ways to the same result"
    return tuple(Equivalent(path, function, old, old.replace(part, new), why) for part, new in changed)


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
    *_sizes("uldp_transforms/beam/runtime/coders.py", "_LARGE = 1 << 12", "_LARGE = 2 << 12", "_LARGE = 1 << 13"),
    *_sizes("uldp_transforms/beam/runtime/worker_memory.py", "SECONDS = 600.0", "SECONDS = 900.0"),
    *_sizes("uldp_transforms/beam/runtime/worker_memory.py", "MOST = 1 << 16", "MOST = 2 << 16", "MOST = 1 << 17"),
    *_sizes(
        "uldp_transforms/beam/transforms/count_reports.py",
        "_MAX_CELLS = 1 << 22",
        *("_MAX_CELLS = 2 << 22", "_MAX_CELLS = 1 << 23"),
    ),
    *_sizes("uldp_transforms/beam/transforms/count_reports.py", "_OF_A_SUM = 64", "_OF_A_SUM = 65"),
    *_sizes(
        "uldp_transforms/beam/transforms/count_reports.py", "_LONG = 1 << 12", "_LONG = 2 << 12", "_LONG = 1 << 13"
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/count_reports.py",
        "_WAITING_BYTES = 1 << 21",
        *("_WAITING_BYTES = 2 << 21", "_WAITING_BYTES = 1 << 22"),
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/deduplicate.py", "_BLOCK = 1 << 15", "_BLOCK = 2 << 15", "_BLOCK = 1 << 16"
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/estimate_distribution.py",
        "_TOGETHER, _MOST_CELLS = 256, 1 << 20",
        "_TOGETHER, _MOST_CELLS = 257, 1 << 20",
        "_TOGETHER, _MOST_CELLS = 256, 2 << 20",
        "_TOGETHER, _MOST_CELLS = 256, 1 << 21",
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/gather_messages.py",
        "_FLUSH_BYTES = 1 << 21",
        *("_FLUSH_BYTES = 2 << 21", "_FLUSH_BYTES = 1 << 22"),
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/gather_messages.py",
        "_FLUSH_MESSAGES = 1 << 14",
        *("_FLUSH_MESSAGES = 2 << 14", "_FLUSH_MESSAGES = 1 << 15"),
    ),
    *_sizes("uldp_transforms/beam/transforms/gather_messages.py", "_LOOKED_AT = 64", "_LOOKED_AT = 65"),
    *_sizes(
        "uldp_transforms/beam/transforms/known_ids.py",
        "_RATIO = 4  # a run is merged with the next one unless it is more than so many times as long",
        "_RATIO = 5  # a run is merged with the next one unless it is more than so many times as long",
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/known_ids.py",
        "_MERGED_AT_ONCE = 1 << 16",
        *("_MERGED_AT_ONCE = 2 << 16", "_MERGED_AT_ONCE = 1 << 17"),
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/known_reports.py",
        "_FIRST_SLOTS = 1 << 4",
        *("_FIRST_SLOTS = 2 << 4", "_FIRST_SLOTS = 1 << 5"),
    ),
    *_sizes("uldp_transforms/beam/transforms/known_reports.py", "_MAX_FILLED = 0.5", "_MAX_FILLED = 0.75"),
    *_sizes(
        "uldp_transforms/beam/transforms/known_reports.py",
        "_AT_ONCE = 1 << 16",
        *("_AT_ONCE = 2 << 16", "_AT_ONCE = 1 << 17"),
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/period_counts.py",
        "_MAX_CELLS = 1 << 22",
        *("_MAX_CELLS = 2 << 22", "_MAX_CELLS = 1 << 23"),
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/period_counts.py", "_SMALL = 1 << 15", "_SMALL = 2 << 15", "_SMALL = 1 << 16"
    ),
    *_sizes(
        "uldp_transforms/beam/transforms/read_report_files.py",
        "_NOTE_EVERY = 64  # blocks of messages",
        "_NOTE_EVERY = 65  # blocks of messages",
    ),
    *_sizes(
        "uldp_transforms/calendar_windows.py",
        "_RULED_DAY = 47_482",
        "_RULED_DAY = 47483",
        why="from 2100 on, days repeat after 400 years, from whichever day this is counted",
    ),
    *_sizes(
        "uldp_transforms/calendar_windows.py",
        "_PROBES = range(-2_272_060_800, 16_756_761_600, 86_400)",
        "_PROBES = range(-2_272_060_800, 16756761601, 86_400)",
        "_PROBES = range(-2_272_060_800, 16_756_761_600, 86401)",
        why="changes of clocks are many days apart, and each is found to the second between two probes",
    ),
    *_sizes("uldp_transforms/calendar_windows.py", "_MANY = 64", "_MANY = 65"),
    *_sizes(
        "uldp_transforms/calendar_windows.py",
        "_BEFORE_ALL = -(1 << 62)",
        *("_BEFORE_ALL = -(2 << 62)", "_BEFORE_ALL = -(1 << 63)"),
        why="another moment before all event times",
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
        "uldp_transforms/jobs/records/run_accounts.py",
        "kept",
        'looking = threading.Thread(target=look, name="accounts", daemon=True)',
        'looking = threading.Thread(target=look, name="accounts", daemon=False)',
        "the block waits for the end of its thread before it is left",
    ),
    Equivalent(
        "uldp_transforms/jobs/reestimate/stored_counts.py",
        "_is_whole",
        "return False  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained",
        "return None  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained",
        "only whether it is true is asked",
    ),
    Equivalent(
        "uldp_transforms/jobs/report/collection_facts.py",
        "_sure",
        'return f"{100 * (1 - doubt):.1f} %" if doubt > _HARDLY_ANY else "more than 99.9 %"',
        'return f"{100 * (1 - doubt):.1f} %" if (doubt >= _HARDLY_ANY) else "more than 99.9 %"',
        "no epsilon has exactly this doubt",
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
        "return Array.from({ length: Math.floor(Math.log10(top) + 1e-10) - least + 1 }, (_, at) => 10 ** "
        "(least + at));",
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
        "on import",
        "_EXACT = 8  # largest number of symbols for which as many vectors are used as there are symbols",
        "_EXACT = 9  # largest number of symbols for which as many vectors are used as there are symbols",
        "orders of these matrices are powers of 2",
    ),
    Equivalent(
        "uldp_transforms/ldp/borrowing/borrow.py",
        "on import",
        "_TINY = 1e-18",
        "_TINY = 1.5000000000000001e-18",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/borrowing/borrow.py",
        "need_of_borrowing",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 2 / alphabet.num_symbols)) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
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
        "_weights",
        "weights = several if risk < risk_of_one - error else one",
        "weights = several if (risk <= risk_of_one - error) else one",
        "risks that are equal but for a standard error, to the last digit",
    ),
    Equivalent(
        "uldp_transforms/ldp/client_window.py",
        "ClientWindow.of",
        "if not 0 < length <= _LONGEST or (timezone is not None and length % DAY):",
        "if not 1 < length <= _LONGEST or (timezone is not None and length % DAY):",
        "the smallest unit is a minute: no text has the length of a millisecond",
    ),
    Equivalent(
        "uldp_transforms/ldp/comparisons/compare.py",
        "on import",
        "_GRID = np.linspace(0.05, 8.2, 164)",
        "_GRID = np.linspace(0.05, 8.2, 165)",
        "more points between the same ends: intervals are nearly linear between them",
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
        "uldp_transforms/ldp/discovery/discover.py",
        "_longer",
        "normal = raw / np.sqrt(np.maximum(solution.own.null + np.square(solution.jump) / 2, 1e-300))",
        "normal = raw / np.sqrt(np.maximum(solution.own.null + np.square(solution.jump) / 2, 1.5e-300))",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/grammar.py",
        "Grammar.followers",
        "if len(tail) >= self._longest:",
        "if (len(tail) > self._longest):",
        "a tail as long as the longest token is the beginning of none",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/level.py",
        "on import",
        "_ROWS = 128  # parents that are looked up at a time; they share one table of sums",
        "_ROWS = 129  # parents that are looked up at a time; they share one table of sums",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/level.py",
        "_fit",
        "gram.flat[:: len(gram) + 1] *= 1 + 1e-9",
        "gram.flat[:: len(gram) + 1] *= 1 + 1.5000000000000002e-09",
        "any tiny number makes equal columns distinguishable",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/level.py",
        "_fit",
        "return frequencies, np.sqrt(np.maximum(np.diag(inverse), 1e-300))",
        "return frequencies, np.sqrt(np.maximum(np.diag(inverse), 1.5e-300))",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/search.py",
        "on import",
        "_ROWS = 128  # parents whose prefixes have their beliefs in memory together",
        "_ROWS = 129  # parents whose prefixes have their beliefs in memory together",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/search.py",
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/discovery/search.py",
        "Search._striking",
        "return dict(zip(scores, np.exp(np.minimum(logs - beliefs, 700.0)).tolist()))",
        "return dict(zip(scores, np.exp(np.minimum(logs - beliefs, 1050.0)).tolist()))",
        "numbers of false positives that are far beyond all limits",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/few_values.py",
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/log_smooth.py",
        "on import",
        "_MOST_STEPS = 60",
        "_MOST_STEPS = 61",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/log_smooth.py",
        "on import",
        "_LONGEST_STEP = 3.0  # maximum change of an entry of eta in one step",
        "_LONGEST_STEP = 4.5  # maximum change of an entry of eta in one step",
        "steps to the same maximum",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/number_sums.py",
        "on import",
        "_NO_VARIANCE, _DIGITS = 1e-9, 12  # where the sum of unbiased frequencies is 1 but for rounding",
        "_NO_VARIANCE, _DIGITS = 1.5000000000000002e-09, 12  # where the sum of unbiased frequencies is 1 "
        "but for rounding",
        "the sum of frequencies has no variance, or one above 1",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/number_sums.py",
        "on import",
        "_NO_VARIANCE, _DIGITS = 1e-9, 12  # where the sum of unbiased frequencies is 1 but for rounding",
        "_NO_VARIANCE, _DIGITS = 1e-9, 13  # where the sum of unbiased frequencies is 1 but for rounding",
        "rounding errors are smaller, and sums that are not 1 differ by more",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/stacked_priors.py",
        "on import",
        "SHORT = 96",
        "SHORT = 97",
        "chooses between two ways to the same means",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/stacked_priors.py",
        "on import",
        "_FEW = 3  # number of lists up to which one after the other is faster",
        "_FEW = 4  # number of lists up to which one after the other is faster",
        "chooses between two ways to the same means",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/stacked_priors.py",
        "on import",
        "_ROUND = 8  # numbers of atoms are rounded up to a multiple of this, so that more lists have the same shape",
        "_ROUND = 9  # numbers of atoms are rounded up to a multiple of this, so that more lists have the same shape",
        "adds atoms without weight",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/stacked_priors.py",
        "on import",
        "_TOGETHER = 131_072  # maximum size of the kernels that are solved at once: they fit into the cache",
        "_TOGETHER = 131073  # maximum size of the kernels that are solved at once: they fit into the cache",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/estimators/stacked_priors.py",
        "_levels",
        "unfinished = unfinished & (np.abs(step - level) > SAME * level) & (high - low > SAME * high)",
        "unfinished = unfinished & (np.abs(step - level) > SAME * level) & ((high + low) > SAME * high)",
        "goes on where steps no longer move the level",
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
        "return num_reports * cells_of_a_report * PAYS >= num_periods * (num_strata or self.num_cohorts) * "
        "self.num_cells",
        "return (num_reports / cells_of_a_report) * PAYS >= num_periods * (num_strata or self.num_cohorts) * "
        "self.num_cells",
        "chooses between two ways to count, whose counts are the same",
    ),
    Equivalent(
        "uldp_transforms/ldp/planning/forecast.py",
        "Groups.of",
        "logs = np.floor(np.log(np.maximum(frequencies, 1e-300)) / _SMALL_STEP)",
        "logs = np.floor(np.log(np.maximum(frequencies, 1.5e-300)) / _SMALL_STEP)",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "uldp_transforms/ldp/planning/forecast.py",
        "_folded",
        "ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 30)",
        "ratios = np.clip(means / np.maximum(deviations, 1.5e-300), -30, 30)",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "uldp_transforms/ldp/planning/forecast.py",
        "_folded",
        "ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 30)",
        "ratios = np.clip(means / np.maximum(deviations, 1e-300), -30, 31)",
        "the density and the error function of 30 are 0 and 1",
    ),
    Equivalent(
        "uldp_transforms/ldp/planning/hashed_forecast.py",
        "_coarse",
        "logs = np.log(np.maximum(atoms, 1e-300))",
        "logs = np.log(np.maximum(atoms, 1.5e-300))",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "uldp_transforms/ldp/planning/number_forecast.py",
        "on import",
        "_NEAR_ZERO = 1e-300",
        "_NEAR_ZERO = 1.5e-300",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "uldp_transforms/ldp/planning/open_question.py",
        "OpenQuestion._shapes",
        "candidates, listed = (Groups.of(part / max(part.sum(), 1e-300)) for part in raw)",
        "candidates, listed = (Groups.of(part / max(part.sum(), 1.5e-300)) for part in raw)",
        "keeps 0 from being divided by or from having no logarithm: any number so small does",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/alarm.py",
        "_together",
        "return max(1, min(_MOST_TOGETHER, _CELLS // max(size * len(DRIFTS), 1)))",
        "return max(1, min(_MOST_TOGETHER, _CELLS // max(size * len(DRIFTS), 2)))",
        "a block of no values may have any size",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/breaks.py",
        "_found",
        "lasting = lasts > alone",
        "lasting = (lasts >= alone)",
        "odds are equal only where neither kind of change is possible",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/course.py",
        "on import",
        "_LEAST_KEPT = 1e-12",
        "_LEAST_KEPT = 1.5e-12",
        "a gain of nearly 1 forgets all windows before",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/drift_fit.py",
        "on import",
        "_TOGETHER = 16  # windows whose likelihoods are computed at once",
        "_TOGETHER = 17  # windows whose likelihoods are computed at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/drift_fit.py",
        "on import",
        "_FACTORS = 8  # variances whose product fits into a 64-bit float, which saves logarithms",
        "_FACTORS = 9  # variances whose product fits into a 64-bit float, which saves logarithms",
        "products of nine variances fit into a 64-bit float too",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/drift_fit.py",
        "fit",
        "if len(law.shares) > FITTED:",
        "if (len(law.shares) >= FITTED):",
        "all values, in another order",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/evidence.py",
        "on import",
        "_LEAST_TAIL = 1e-300  # its normal quantile is 37",
        "_LEAST_TAIL = 1.5e-300  # its normal quantile is 37",
        "probabilities that are as good as 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/scales.py",
        "on import",
        "_BLOCK = 1024  # values whose likelihoods are computed at once",
        "_BLOCK = 1025  # values whose likelihoods are computed at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/scales.py",
        "_likely",
        "excess.append(float((weight[seen] * variances / law.shares[seen]).sum() / max(weight[seen].sum(), 1e-300)))",
        "excess.append(float((weight[seen] * variances / law.shares[seen]).sum() / max(weight[seen].sum(), 1.5e-300)))",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/scales.py",
        "_grid",
        "fine = np.arange(steps[0], steps[-1] + 0.25, 0.5)",
        "fine = np.arange(steps[0], steps[-1] + 0.375, 0.5)",
        "ends at the same point of the grid",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/season.py",
        "on import",
        "_BLOCK = 1024  # values that are whitened at once",
        "_BLOCK = 1025  # values that are whitened at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/smoothed_shares.py",
        "on import",
        "_BLOCK = 1024  # values that are smoothed at once",
        "_BLOCK = 1025  # values that are smoothed at once",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/smoothed_shares.py",
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/smoothing/variation.py",
        "on import",
        "_UNSEEN = KIND(1e8)  # variance of a missing estimate",
        "_UNSEEN = KIND(150000000.0)  # variance of a missing estimate",
        "a window without an estimate says nothing with either",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/buckets.py",
        "on import",
        "_DENSE_BUCKETS = 24  # with fewer buckets a dense product is faster than summing over collisions",
        "_DENSE_BUCKETS = 25  # with fewer buckets a dense product is faster than summing over collisions",
        "chooses between two ways to the same matrix",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/buckets.py",
        "on import",
        "_CHUNK_CELLS = 16_000_000",
        "_CHUNK_CELLS = 16000001",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/buckets.py",
        "on import",
        "_ROWS = 64  # rows of a Gram matrix that a thread fills at a time",
        "_ROWS = 65  # rows of a Gram matrix that a thread fills at a time",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "on import",
        "_REACH = 8.0  # standard errors: densities beyond this are below the precision of the weights",
        "_REACH = 12.0  # standard errors: densities beyond this are below the precision of the weights",
        "adds atoms of which the likelihood is below the precision of weights",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "on import",
        "_DENSE = 16_384  # maximum size of a kernel for which products with the full matrix are faster than "
        "with the sparse one",
        "_DENSE = 16385  # maximum size of a kernel for which products with the full matrix are faster than "
        "with the sparse one",
        "chooses between two ways to the same product",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "on import",
        "TRIES = 60  # steps of Newton's method, which needs about five; bisection where it fails",
        "TRIES = 61  # steps of Newton's method, which needs about five; bisection where it fails",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "on import",
        "SAME = 1e-14",
        "SAME = 1.5e-14",
        "stops at the same level up to rounding",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "on import",
        "LEAST = 1e-300",
        "LEAST = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "binomial_logs",
        "rates = np.clip(rates, LEAST, 1 - 1e-16)",
        "rates = np.clip(rates, LEAST, 1 - 1.5e-16)",
        "the same number: the largest below 1",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "_most_likely",
        "whole: Any = kernel.toarray() if math.prod(kernel.shape) <= _DENSE else kernel",
        "whole: Any = kernel.toarray() if (math.prod(kernel.shape) < _DENSE) else kernel",
        "chooses between two ways to the same product",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/fitted_prior.py",
        "_most_likely",
        "whole: Any = kernel.toarray() if math.prod(kernel.shape) <= _DENSE else kernel",
        "whole: Any = kernel.toarray() if (math.prod(kernel.shape) > _DENSE) else kernel",
        "chooses between two ways to the same product",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "on import",
        "_ROWS = 4096  # values per block",
        "_ROWS = 4097  # values per block",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "on import",
        "_STEPS = 60  # of Newton's method, which needs about five; bisection where it fails",
        "_STEPS = 61  # of Newton's method, which needs about five; bisection where it fails",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "tail",
        "if x >= float(law.means.max(axis=1).sum()) * (1 - 1e-9):",
        "if (x > float(law.means.max(axis=1).sum()) * (1 - 1e-09)):",
        "a sum exactly at the limit of a rounding error",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "_Law.tilt",
        "step = step if low < step < min(high, 4 * t) else min((low + high) / 2, 2 * t)",
        "step = step if (low <= step < min(high, 4 * t)) else min((low + high) / 2, 2 * t)",
        "a step exactly to the end of the bracket",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "_Law.tilt",
        "step = step if low < step < min(high, 4 * t) else min((low + high) / 2, 2 * t)",
        "step = step if (low < step <= min(high, 4 * t)) else min((low + high) / 2, 2 * t)",
        "a step exactly to the end of the bracket",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/hash_chance.py",
        "_ends",
        "ends = left / np.where(left > 0, tilted, 1)  # below 0 there are no own reports",
        "ends = left / np.where((left >= 0), tilted, 1)  # below 0 there are no own reports",
        "0 divided by either number is 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/least_squares.py",
        "on import",
        "_ROUNDS = 6  # of reweighting, which converges in two or three",
        "_ROUNDS = 7  # of reweighting, which converges in two or three",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/least_squares.py",
        "on import",
        "_BLOCK = 256  # rows that are copied at a time",
        "_BLOCK = 257  # rows that are copied at a time",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/least_squares.py",
        "solver",
        "system = gram + np.trace(gram) / size**2 if complete else gram  # leaves minima with sum(p) = 1 unchanged",
        "system = gram + np.trace(gram) / (size * 2) if complete else gram  # leaves minima with sum(p) = 1 unchanged",
        "adds a positive number to all entries, which the sum of 1 makes a constant of the loss",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/likelihood.py",
        "on import",
        "_SMALLEST = 1e-300",
        "_SMALLEST = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/likelihood.py",
        "on import",
        "_ENOUGH = 1e-4  # minimum share of the increase predicted by the gradient that a long step must "
        "achieve (Armijo)",
        "_ENOUGH = 0.00015000000000000001  # minimum share of the increase predicted by the gradient that a "
        "long step must achieve (Armijo)",
        "steps to the same maximum",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/likelihood.py",
        "on import",
        "_SHORTER, _TRIALS = 0.25, 4  # factor by which a long step is shortened, and maximum number of times",
        "_SHORTER, _TRIALS = 0.375, 4  # factor by which a long step is shortened, and maximum number of times",
        "steps to the same maximum",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/likelihood.py",
        "on import",
        "_SHORTER, _TRIALS = 0.25, 4  # factor by which a long step is shortened, and maximum number of times",
        "_SHORTER, _TRIALS = 0.25, 5  # factor by which a long step is shortened, and maximum number of times",
        "steps to the same maximum",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/likelihood.py",
        "maximize",
        "metric = np.maximum(curvature, curvature.max() * 1e-12)",
        "metric = np.maximum(curvature, curvature.max() * 1.5e-12)",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/message_passing.py",
        "_converge",
        "bound = max(given.mass, 1e-12) / max(buckets.num_hashes * buckets.num_unknowns, 1)",
        "bound = max(given.mass, 1.5e-12) / max(buckets.num_hashes * buckets.num_unknowns, 1)",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/observation.py",
        "on import",
        "_NEWTON_STEPS = 50",
        "_NEWTON_STEPS = 51",
        "a limit of steps that are not needed: they stop before",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/observation.py",
        "on import",
        "_ENOUGH = 1e-9  # relative to the degrees of freedom",
        "_ENOUGH = 1.5000000000000002e-09  # relative to the degrees of freedom",
        "stops at the same number up to rounding",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/observation.py",
        "Observation.plausible",
        "scaled: np.ndarray = self.mass * positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)",
        "scaled: np.ndarray = self.mass * positive / np.maximum(positive.sum(axis=1, keepdims=True), 1.5e-300)",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/overfull.py",
        "on import",
        "_TINY = 1e-300",
        "_TINY = 1.5e-300",
        "a number that is as good as 0, so that nothing is divided by 0",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/packed.py",
        "on import",
        "_BLOCK = 32_768  # unknowns that are looked up at a time, so that their sums stay in the cache",
        "_BLOCK = 32769  # unknowns that are looked up at a time, so that their sums stay in the cache",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/packed.py",
        "on import",
        "_BUILD_CELLS = 4_000_000  # cells that are hashed at a time",
        "_BUILD_CELLS = 4000001  # cells that are hashed at a time",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/packed.py",
        "PackedBuckets.of_values",
        "step = max(1, _BUILD_CELLS // columns)  # blocks that fit into the cache",
        "step = max(2, _BUILD_CELLS // columns)  # blocks that fit into the cache",
        "changes only how much is computed at a time",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/pooled_versions.py",
        "on import",
        "_SMALLEST = 1e-10  # relative to the sum of variances; a smaller variance of their sum is a rounding error",
        "_SMALLEST = 1.5e-10  # relative to the sum of variances; a smaller variance of their sum is a rounding error",
        "rounding errors are far below, and variances far above",
    ),
    Equivalent(
        "uldp_transforms/ldp/solvers/prefix_parts.py",
        "_shares",
        "shares[-1] = np.maximum(shares[-1], 1e-300)",
        "shares[-1] = np.maximum(shares[-1], 1.5e-300)",
        "shares of the last part alone are 1, however small its number",
    ),
    *_ways(
        "uldp_transforms/windows.py",
        "_distinct",
        "if size < 4 * len(numbers) + 1024:  # a small table of all is faster than sorting",
        ("size < 4 * len(numbers) + 1024", "(size <= 4 * len(numbers) + 1024)"),
        ("4 * len(numbers) + 1024", "(4 * len(numbers) - 1024)"),
        ("4 * len(numbers)", "(4 / len(numbers))"),
        ("4 *", "5 *"),
        ("1024", "1025"),
    ),
    Equivalent(
        "uldp_transforms/ldp/utility/losses.py",
        "expected_l1",
        "counted = np.clip(mechanism.response(np.asarray(frequencies, dtype=np.float64)), 0, 1)",
        "counted = np.clip(mechanism.response(np.asarray(frequencies, dtype=np.float64)), 0, 2)",
        "rates are at most 1 but for rounding",
    ),
    Equivalent(
        "uldp_transforms/ldp/utility/minimax.py",
        "on import",
        "_HALVINGS = 60",
        "_HALVINGS = 61",
        "54 halvings reach the last digit of numbers from 0 to 1",
    ),
    Equivalent(
        "uldp_transforms/ldp/utility/poisoning.py",
        "need_of_liars",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 2 / alphabet.num_symbols)) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "uldp_transforms/ldp/utility/poisoning.py",
        "need_of_liars",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, 1 / alphabet.num_symbols)) is not None:",
        "if alphabet.redistribution(np.full(alphabet.num_symbols, (1 * alphabet.num_symbols))) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "uldp_transforms/ldp/utility/worst_case.py",
        "on import",
        '_FINE = {"xatol": 1e-13}',
        '_FINE = {"xatol": 1.5000000000000002e-13}',
        "changes the thirteenth digit of a maximum that is flat",
    ),
    Equivalent(
        "uldp_transforms/ldp/versions/version_weights.py",
        "VersionWeights.of",
        "high = np.where(_loss(_weights(even, worst, low), ratios) <= limit, 0.0, 1.0)",
        "high = np.where((_loss(_weights(even, worst, low), ratios) < limit), 0.0, 1.0)",
        "a loss of exactly 1 is that of one version alone, whose weight is 1 with any caution",
    ),
    Equivalent(
        "uldp_transforms/ldp/versions/version_weights.py",
        "VersionWeights.of",
        "good = _loss(_weights(even, worst, middle), ratios) <= limit",
        "good = (_loss(_weights(even, worst, middle), ratios) < limit)",
        "a loss of exactly 1 is that of one version alone, whose weight is 1 with any caution",
    ),
    Equivalent(
        "uldp_transforms/ldp/versions/version_weights.py",
        "_weights",
        "precisions: np.ndarray = 1 / ((1 - caution) * even + caution * worst)",
        "precisions: np.ndarray = 2 / ((1 - caution) * even + caution * worst)",
        "the weights are divided by their sum",
    ),
    Equivalent(
        "uldp_transforms/ldp/versions/versioned_question.py",
        "VersionedQuestion.__post_init__",
        "if collection.alphabet.redistribution(np.full(size, 1 / size)) is not None:",
        "if collection.alphabet.redistribution(np.full(size, 2 / size)) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "uldp_transforms/ldp/versions/versioned_question.py",
        "VersionedQuestion.__post_init__",
        "if collection.alphabet.redistribution(np.full(size, 1 / size)) is not None:",
        "if collection.alphabet.redistribution(np.full(size, (1 * size))) is not None:",
        "whether an alphabet moves shares does not depend on the shares",
    ),
    Equivalent(
        "uldp_transforms/messages/containers.py",
        "on import",
        "_READ_BYTES = 1 << 20",
        "_READ_BYTES = 1 << 21",
        "changes only how much is read at a time",
    ),
    Equivalent(
        "uldp_transforms/messages/containers.py",
        "on import",
        "_READ_BYTES = 1 << 20",
        "_READ_BYTES = 2 << 20",
        "changes only how much is read at a time",
    ),
    Equivalent(
        "uldp_transforms/messages/decoder.py",
        "on import",
        "_PADDING = 64  # zero bytes after the messages, so that reading past an end is harmless",
        "_PADDING = 65  # zero bytes after the messages, so that reading past an end is harmless",
        "reads past an end need 35 bytes",
    ),
    Equivalent(
        "uldp_transforms/messages/decoder.py",
        "MessageDecoder._violations",
        "if self._gate.early_by(highest, first) > 0:  # else none is too early, and mostly none is",
        "if (self._gate.early_by(highest, first) >= 0):  # else none is too early, and mostly none is",
        "looks at each report where none can be too early",
    ),
    Equivalent(
        "uldp_transforms/messages/decoder.py",
        "MessageDecoder._violations",
        "if self._gate.late_by(lowest, last) > 0:",
        "if (self._gate.late_by(lowest, last) >= 0):",
        "looks at each report where none can be too old",
    ),
    Equivalent(
        "uldp_transforms/messages/decoder.py",
        "MessageDecoder._violations",
        "if lowest < MIN_EVENT_TIME or highest >= MAX_EVENT_TIME:",
        "if (lowest <= MIN_EVENT_TIME) or highest >= MAX_EVENT_TIME:",
        "looks at each time where none can be out of range",
    ),
    Equivalent(
        "uldp_transforms/rows/figure_history.py",
        "_digits",
        "return max(4, 3 + math.floor(math.log10(max(abs(number) / width, 1))))",
        "return max(4, 3 + math.floor(math.log10(max(abs(number) / width, 2))))",
        "the logarithms of 1 and of 2 are both rounded down to 0",
    ),
    Equivalent(
        "uldp_transforms/rows/window_history.py",
        "Neighbours.of",
        "cells[2] = np.where(np.isnan(cells[2]) & ~np.isnan(cells[0]), 0, cells[2])",
        "cells[2] = np.where(np.isnan(cells[2]) & ~np.isnan(cells[1]), 0, cells[2])",
        "an entry has its raw share and its standard error, or neither",
    ),
)

_REASONS = {each[:4]: each.why for each in EQUIVALENTS}


def key_of(mutant: Mutant, source: bytes) -> tuple[str, str, str, str]:
    """What names a mutant: its place may move."""
    return (mutant.path, mutant.function, *mutant.lines(source))


def reason_of(mutant: Mutant, source: bytes) -> str | None:
    """Why a mutant of this source is the same program; None if it is not in the list."""
    return _REASONS.get(key_of(mutant, source))
