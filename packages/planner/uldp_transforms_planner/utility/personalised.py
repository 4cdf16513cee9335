"""Errors of estimates over a ``tagged`` alphabet, in which some people hide their value behind a tag.

Notation: r the frequencies of the K symbols (values and tags), p those of the values, T tags. With the distribution
pi_k of the values behind tag k, p = r + sum over k of r(tag k) pi_k on the values and 0 on the tags; the collector has
only an approximation of pi_k.

Source: Murakami and Kawamoto 2019, section 5.
"""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.alphabets import Tagged
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms_planner.utility.arguments import require_distribution, require_reports


def tagged_l1_bound(alphabet: Tagged, estimated: np.ndarray, true: np.ndarray, behind: np.ndarray) -> float:
    """Upper bound of the sum of absolute errors of the values' frequencies, for one outcome.

        l1(p^, p) <= l1(r^, r) + sum over k of |r^(tag k)| l1(pi^_k, pi_k)

    The second sum does not decrease with the number of reports and does not depend on epsilon. Tag frequencies enter
    with their absolute value, since unbiased estimates can be negative; the published theorem omits it.

    Args:
        alphabet: alphabet with its tags and the background knowledge about them.
        estimated: (K,) unbiased frequencies of symbols, r^.
        true: (K,) their true frequencies, r.
        behind: (K, T), one column per tag: the true distribution over symbols of the values behind it.

    Raises:
        SpecError: for arrays of another shape, or if a column of ``behind`` is not a distribution of non-sensitive
        values.

    Source: Murakami and Kawamoto 2019, Theorem 1.
    """
    r = require_distribution("tagged_l1_bound.true", true, alphabet.num_symbols)
    behind = _require_behind("tagged_l1_bound.behind", behind, alphabet)
    estimated = np.asarray(estimated, dtype=np.float64)
    if estimated.shape != r.shape:
        raise SpecError(f"tagged_l1_bound.estimated must have the shape {r.shape}, got {estimated.shape}")
    tags = _tags(alphabet)
    guessed = alphabet.redistribution(estimated)[:, tags]
    wrong = np.abs(guessed - behind).sum(axis=0)
    return float(np.abs(estimated - r).sum() + np.abs(estimated[tags]) @ wrong)


def tagged_l2(
    alphabet: Tagged, mechanism: Mechanism, frequencies: np.ndarray, num_reports: int, behind: np.ndarray
) -> float:
    """Expected sum of squared errors of the values' frequencies in the population model: |A r - p|^2 + tr(A V A^T)/n.

    A is the linear map from symbols to values that the background knowledge defines, V the covariance of one report's
    inverse. Exact for every number of reports if all tags have background knowledge; otherwise A depends on the
    estimate and is evaluated at the true r, and the result holds for many reports.

    Args:
        alphabet: alphabet with T tags.
        mechanism: mechanism over its K symbols.
        frequencies: (K,) r, true frequencies of the symbols.
        num_reports: n.
        behind: (K, T), as for ``tagged_l1_bound``.

    Raises:
        SpecError: as for ``tagged_l1_bound``.

    Source: derived in docs/utility.md from Murakami and Kawamoto 2019, equation 22.
    """
    r = require_distribution("tagged_l2.frequencies", frequencies, alphabet.num_symbols)
    require_reports("tagged_l2.num_reports", num_reports)
    behind = _require_behind("tagged_l2.behind", behind, alphabet)
    tags = _tags(alphabet)
    values = np.delete(np.arange(alphabet.num_symbols), np.r_[tags])
    true = (r + behind @ r[tags])[values]
    matrix = alphabet.redistribution(r)[values]
    bias = alphabet.redistribute(r)[values] - true
    return float(bias @ bias + mechanism.variance_of(matrix, r).sum() / num_reports)


def _tags(alphabet: Tagged) -> slice:
    """The symbols of the tags."""
    return slice(len(alphabet.sensitive), alphabet.num_sensitive)


def _require_behind(where: str, behind: np.ndarray, alphabet: Tagged) -> np.ndarray:
    """The checked (K, T) float64; see ``tagged_l1_bound``."""
    columns = require_distribution(where, np.transpose(behind), alphabet.num_symbols)
    if columns.shape != (len(alphabet.tags), alphabet.num_symbols) or columns[:, : alphabet.num_sensitive].any():
        raise SpecError(
            f"{where} must have a column of non-sensitive values for each of {len(alphabet.tags)} tag(s), "
            f"got the shape {np.shape(behind)} or weight on sensitive ones"
        )
    return np.transpose(columns)
