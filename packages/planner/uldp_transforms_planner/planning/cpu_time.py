"""CPU time of a client and of a collector, from the numbers of their most frequent steps.

The steps were timed by ``python -m labs.benchmarks folded`` on one core, the client's with the JavaScript client. Other
machines differ by a factor that is about the same for all steps.
"""

from __future__ import annotations

from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.solvers.linear import FEW_UNKNOWNS

_REPORT, _PAYLOAD_BYTE = 5e-6, 4e-7  # a report, and each byte of its payload
_HASH_BLOCK, _RANKED = 1e-6, 3.6e-6  # 168 bytes of SHAKE-128, and one value that is compared with others
_BLOCK_WORDS = 21

_COUNTED, _COUNTED_BYTE = 5e-9, 1e-9  # a report, and each byte of its payload
_ESTIMATED, _PLACED, _ELIMINATED, _PASSED = 6e-7, 5e-7, 3e-10, 4e-9  # see ``window_seconds``


def client_seconds(mechanism: Mechanism, num_cohorts: int = 1, hashed: int = 0) -> float:
    """CPU seconds of one report.

    Args:
        mechanism: of the collection.
        num_cohorts: C; the words of cohort c are behind those of all earlier ones.
        hashed: number of values that the client hashes: none, its own, or all of a list, which it then compares.
    """
    blocks = (num_cohorts + _BLOCK_WORDS) / (2 * _BLOCK_WORDS)  # mean over cohorts
    ranked = hashed if hashed > 1 else 0
    return _REPORT + _PAYLOAD_BYTE * mechanism.payload_size + hashed * _HASH_BLOCK * blocks + ranked * _RANKED


def window_seconds(mechanism: Mechanism, num_reports: int, num_values: int, num_cohorts: int = 1) -> float:
    """CPU seconds for counting and estimating a window, without the table of buckets, which is made once.

    Args:
        mechanism: of the collection.
        num_reports: n.
        num_values: S, those that share buckets if there are several cohorts.
        num_cohorts: C.
    """
    counted = num_reports * (_COUNTED + _COUNTED_BYTE * mechanism.payload_size)
    if num_cohorts == 1:
        return counted + num_values * _ESTIMATED
    cells = num_cohorts * num_values
    if num_values <= FEW_UNKNOWNS:
        return counted + cells * _PLACED + num_values**3 * _ELIMINATED
    return counted + cells * _PASSED + num_values * _ESTIMATED
