"""Sums over chosen values: the share of a set of values, or a mean of numbers that belong to values."""

from uldp_transforms.ldp.share_sums.named_sum import NamedSum as NamedSum
from uldp_transforms.ldp.share_sums.named_sum import check_sums as check_sums
from uldp_transforms.ldp.share_sums.named_sum import read_sums as read_sums
from uldp_transforms.ldp.share_sums.share_sums import ShareSums as ShareSums
