"""Shares of groups that borrow from all reports, as far as that is estimated to make them better."""

from uldp_transforms.ldp.borrowing.borrow import BorrowedShares as BorrowedShares
from uldp_transforms.ldp.borrowing.borrow import borrow as borrow
from uldp_transforms.ldp.borrowing.borrow import borrowed_shares as borrowed_shares
from uldp_transforms.ldp.borrowing.borrow import need_of_borrowing as need_of_borrowing
