"""The keys of counts in a job, and whose counts they are."""

from __future__ import annotations

from uldp_transforms.messages.group_keys import FINGERPRINT_BYTES, fingerprint_of, is_total, pairs_of
from uldp_transforms.rows.samples.sample import Owner
from uldp_transforms.spec.job_spec import JobSpec


class Owners:
    """The owners of a job: its collections and questions, each with its groups.

    Args:
        spec: specification of the job.
    """

    def __init__(self, spec: JobSpec):
        self._by = spec.by or ()
        self._catalog = spec.catalog
        self._questions = {question.fingerprint: question for question in spec.questions}
        self._of_version = {one.fingerprint: question for question in spec.questions for one in question.pooled}
        self._owners: dict[bytes, Owner] = {}

    def of(self, key: bytes) -> Owner:
        """The owner of counts under this key, which ``in_question`` or the counting made."""
        if key not in self._owners:
            self._owners[key] = self._of(key)
        return self._owners[key]

    def _of(self, key: bytes) -> Owner:
        question = self._questions.get(fingerprint_of(key))
        if question is None:
            collection = self._catalog[fingerprint_of(key)]
            return Owner(named=collection, group=pairs_of(key, collection, self._by))
        if is_total(key):
            return Owner(named=question)
        [values] = (values for values, own in question.groups_by(self._by).items() if own == _number_of(key))
        return Owner(named=question, group=tuple(zip(self._by, values)))

    def is_group_of_nobody(self, key: bytes) -> bool:
        """Whether this is a group of a question that no version has any more: a stream held it when it was updated."""
        question = self._questions.get(fingerprint_of(key))
        if question is None or is_total(key):
            return False
        return _number_of(key) not in question.groups_by(self._by).values()

    def in_question(self, key: bytes) -> bytes | None:
        """The key of a question, or of one of its groups, to which counts under the key of a collection belong; None if
        the collection is pooled in no question.
        """
        question = self._of_version.get(fingerprint_of(key))
        if question is None:
            return None
        if is_total(key):
            return question.fingerprint
        return Owner(named=question, group=self.of(key).group).key


def _number_of(key: bytes) -> int:
    """The number of the group in a key."""
    return int.from_bytes(key[FINGERPRINT_BYTES:], "big")
