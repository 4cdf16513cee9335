"""The closed list of outcomes of a report at the collector.

A reason never changes its number or its meaning; a new fault gets a new reason. ``ACCEPTED`` is zero, so that an
array of reasons is false exactly where the reports are good.
"""

from __future__ import annotations

import enum


@enum.unique
class Reason(enum.IntEnum):
    """Why a report was not counted, in the order of the checks: the first failing check gives the one reason."""

    ACCEPTED = 0
    # the bytes of a message
    TOO_LARGE = 10  #: message longer than the cap
    UNKNOWN_SCHEMA = 11  #: the writer's schema is none of ours
    MALFORMED = 12  #: bytes end too early, or a length that cannot be
    TRAILING_BYTES = 13  #: bytes left after a complete datum
    NON_CANONICAL = 14  #: a variable-length integer with more bytes than it needs
    OUT_OF_RANGE = 15  #: an integer outside its Avro type
    # what the report says
    UNKNOWN_COLLECTION = 20  #: no collection of this job has that fingerprint
    COHORT_RANGE = 21  #: cohort outside [0, num_cohorts), or that times the number of groups
    PAYLOAD_LENGTH = 22  #: payload not as long as the mechanism's reports are
    VALUE_DOMAIN = 23  #: symbol outside the alphabet
    PADDING_BITS = 24  #: spare bits of the last byte are not zero
    IMPOSSIBLE_REPORT = 25  #: well-formed, but no client following the protocol can send it
    NO_REPORT_ID = 26  #: no report id, in a job that counts each id once
    # when it happened
    TIME_RANGE = 30  #: event time outside the years that windows can name
    TOO_EARLY = 31  #: event time later than the arrival plus the allowed clock skew
    TOO_OLD = 32  #: arrived after the end of its base period plus the allowed lateness
    # the files that messages stand in: UNKNOWN_SCHEMA, and
    BAD_MAGIC = 40  #: neither an Avro object container file nor a Parquet file
    CORRUPT_BLOCK = 41  #: a block that cannot be read; reading goes on at the next one
    BLOCK_TOO_LARGE = 42  #: a block that inflates to more than the cap
    NOT_AS_LISTED = 43  #: a file that is not in the manifest, or what it lacks of what the manifest says of it
    UNKNOWN_CODEC = 44  #: an Avro file of ours in a compression that the reader does not have

    @property
    def code(self) -> str:
        """The word used in rows, schemas and documents."""
        return self.name.lower()
