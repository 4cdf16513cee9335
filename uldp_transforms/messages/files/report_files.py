"""The reader of files of reports: Avro containers and Parquet files. No Beam."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from uldp_transforms.messages.containers import read_blocks
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.joined_messages import RepeatedMessages
from uldp_transforms.messages.manifest import HashedFile
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.report_tables import is_table, read_table

Item = Sequence[bytes] | RepeatedMessages | Rejection
"""Messages, messages whose reports count several times, or a part of a file that is rejected."""


def read_reports(
    file: IO[bytes],
    source: str,
    account: Account | None = None,
    *,
    hashed: HashedFile | None = None,
    numbers: str | None = None,
) -> Iterator[Item]:
    """Yield the messages of a file, and a rejection for each part that cannot be read.

    Args:
        file: file opened for reading bytes at its beginning, which can seek.
        source: name of the file, for the rejections.
        account: updated while reading.
        hashed: the same file, if its bytes are to be hashed.
        numbers: as for ``read_table``.
    """
    if not is_table(file):
        return read_blocks(hashed or file, source, account)
    if hashed is not None:
        hashed.read_to_the_end()  # tables are read in another order
    return read_table(file, source, account, numbers)
