"""Faults of the mechanisms, alphabets, counts and the clients in Python."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

MECHANISMS = (
    Plant(
        "cohorts by themselves",
        "uldp_transforms/ldp/sentinels.py",
        "_two_sided(scipy.stats.binom, counts.num_reports[:-1], left, 1 / np.arange(num_cohorts, 1, -1))",
        "_two_sided(scipy.stats.binom, counts.num_reports[:-1], counts.total, 1 / num_cohorts)",
        "sizes of cohorts are multinomial together: their p-values are independent only one given the others",
        ("tests/ldp/test_sentinels.py::test_cohorts_follow_their_joint_law",),
    ),
    Plant(
        "cells with replacement",
        "uldp_transforms/ldp/sentinels.py",
        "_two_sided(scipy.stats.hypergeom, count, n, total, size)",
        "_two_sided(scipy.stats.binom, count, size, total / n)",
        "given how often a symbol was counted in all, its count in a cohort is hypergeometric, not binomial",
        ("tests/ldp/test_sentinels.py::test_cohorts_draw_their_symbols_without_replacement",),
    ),
    Plant(
        "a sum in place",
        "uldp_transforms/ldp/counts/cohort_counts.py",
        "self.cells + other.cells",
        "np.add(self.cells, other.cells, out=self.cells)",
        "a bundle that is tried again is added twice, because its accumulator was changed",
        ("tests/ldp/counts/test_counts.py", "tests/beam/state/test_combine.py"),
    ),
    Plant(
        "a report that leaves before its budget is on disk",
        "uldp_transforms/ldp/client/client_storage.py",
        "            file.flush()\n            os.fsync(file.fileno())\n",
        "            file.flush()\n",
        "after a loss of power the client spends the same budget again",
        ("tests/files/test_power_loss.py",),
    ),
    Plant(
        "a value in clear in the storage",
        "uldp_transforms/ldp/client/client.py",
        "answers[window] = _columns(self._draw(value, self._rounded(event_time), dimensions))",
        "answers[window] = _columns(self._draw(value, self._rounded(event_time), dimensions))\n"
        "                answers[window][3] = value.encode().ljust(16).hex()",
        "whoever takes the device, or receives the report, reads the value",
        ("tests/ldp/client/test_client.py::test_what_is_stored_of_two_values_differs_in_the_payloads_alone",),
    ),
    Plant(
        "a question in the fingerprint",
        "uldp_transforms/ldp/collection.py",
        '        content.pop("question", None)\n',
        "",
        "reports of a collection that runs are refused as soon as it names a question",
        ("tests/ldp/versions/test_pooled_estimate.py",),
    ),
)
