"""Permissions of files that hold for root too, as they do for everybody else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_VERSION = 0x20080522
_OVERRIDING = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH (linux/capability.h)."""


def where_permissions_hold(call: Callable[[], int]) -> int:
    """What a call returns in a thread that may open only what the permissions of files allow."""
    with ThreadPoolExecutor(1, initializer=_give_up) as thread:
        return thread.submit(call).result()


def _give_up() -> None:
    """Capabilities belong to a thread, which cannot take back those that it gave up."""
    libc, header = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: numbers 0 to 31, then those above
    assert libc.capget(header, sets) == 0
    fewer = [one & ~_OVERRIDING for one in sets[:3]]
    assert libc.capset(header, (ctypes.c_uint32 * 6)(*fewer, *sets[3:])) == 0
