"""Faults of the planner, versions, messages, files and rows, and of the compiled decoder."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

MESSAGES_AND_ROWS = (
    Plant(
        "bytes the other way round",
        "uldp_transforms/messages/wire.py",
        'cohorts.astype("<u2")',
        'cohorts.astype(">u2")',
        "cohorts of packed reports are little-endian on the wire",
        ("tests/messages/test_wire.py",),
    ),
    Plant(
        "rows that are only in memory",
        "uldp_transforms/files/whole_file.py",
        "                sync_file(file)\n",
        "                pass\n",
        "a loss of power leaves empty files with the names of complete ones",
        ("tests/files/test_power_loss.py",),
    ),
    Plant(
        "intervals of changes of one value for all",
        "uldp_transforms/rows/smoothed_rows.py",
        "/ 2 / len(windows.values) / change.looks",
        "/ 2 / change.looks",
        "the intervals are said to hold for all values at once",
        ("tests/beam/windows/test_smooth_estimates.py::test_intervals_of_changes_hold_for_all_values_at_once",),
    ),
    Plant(
        "the common part counted twice",
        "uldp_transforms/rows/window_history.py",
        "known = self.variances - np.maximum(self.common, 0)",
        "known = self.variances",
        "noise that all windows share is no noise of each window",
        ("tests/beam/windows/test_smooth_estimates.py::test_what_windows_have_in_common_is_no_noise_of_each",),
    ),
    Plant(
        "an alarm without its past",
        "uldp_transforms/rows/smoothed_rows.py",
        "alarms = judge(series, alarm_every, windows.alarm)",
        "alarms = judge(series, alarm_every)",
        "a stream that keeps few windows would judge by these alone, or never",
        (
            "tests/beam/windows/test_smooth_estimates.py::test_a_stream_that_keeps_four_windows_is_alarmed_as_one_that_keeps_all",
        ),
    ),
    Plant(
        "versions that are weighted for a uniform population",
        "uldp_transforms/ldp/versions/version_weights.py",
        "precisions: np.ndarray = 1 / ((1 - caution) * even + caution * worst)",
        "precisions: np.ndarray = 1 / (even + 0 * caution * worst)",
        "the better version alone can be far more precise than the pooled estimate",
        ("tests/ldp/versions/test_pooled_estimate.py",),
    ),
    Plant(
        "hash noise that averages out over versions",
        "uldp_transforms/ldp/versions/pooled_estimate.py",
        "return whole, whole - _mean(weights**2, of_versions)",
        "return _mean(weights**2, of_versions), 0.0",
        "intervals of versions with the same hash functions are too short",
        ("tests/ldp/versions/test_pooled_estimate.py",),
    ),
)
