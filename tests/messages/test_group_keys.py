"""Keys of counts, byte by byte: state that was kept must be found again."""

from __future__ import annotations

from tests.support.messages.set_dimensions import ARM, COUNTRY, of
from uldp_transforms.messages.group_keys import fingerprint_of, is_total, owner_of_group, pairs_of, split_key

ITEM = of(ARM, COUNTRY)
FINGERPRINT = ITEM.fingerprint


def test_the_key_of_a_group_is_the_fingerprint_and_its_number() -> None:
    owner = owner_of_group(FINGERPRINT, 0x01020304)
    assert owner == FINGERPRINT + b"\1\2\3\4"
    assert fingerprint_of(owner) == fingerprint_of(FINGERPRINT) == FINGERPRINT
    assert is_total(FINGERPRINT) and not is_total(owner)


def test_a_key_with_something_after_it_is_split() -> None:
    owner = owner_of_group(FINGERPRINT, 7)
    for rest in (b"", bytes(8), bytes(16), b"\7" * 24):
        assert split_key(FINGERPRINT + rest) == (FINGERPRINT, rest)
        assert split_key(owner + rest) == (owner, rest)


def test_groups_have_the_names_and_values_of_their_number() -> None:
    """Two arms and other, three countries and other: the number counts countries first."""
    pairs = [pairs_of(owner_of_group(FINGERPRINT, number), ITEM, ("arm", "country")) for number in (0, 1, 4, 11)]
    assert pairs == [
        [("arm", "control"), ("country", "DE")],
        [("arm", "control"), ("country", "FR")],
        [("arm", "new"), ("country", "DE")],
        [("arm", "other"), ("country", "other")],
    ]
    assert pairs_of(owner_of_group(FINGERPRINT, 2), ITEM, ("arm",)) == [("arm", "other")]
    assert pairs_of(FINGERPRINT, ITEM, ("arm",)) == pairs_of(owner_of_group(FINGERPRINT, 2), ITEM, None) == []
