"""What all tests share."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

from tests.support.golden import Records, advice, text_of

settings.register_profile("suite", deadline=None)  # examples take as long as they take: machines are busy at times
settings.load_profile("suite")


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Golden records that differ are shown line by line."""
    old, new = (left, right) if isinstance(left, Records) else (right, left)
    if op != "==" or not isinstance(old, Records) or not isinstance(new, list):
        return None
    return advice(f"tests/golden/{old.name}", text_of(old), text_of(new))
