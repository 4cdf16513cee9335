"""What a worker holds: found by its version, by one at a time, and let go when nobody asks."""

from __future__ import annotations

import threading

from uldp_transforms.beam.runtime.worker_memory import VERSION_BYTES, Held, new_version


def test_what_is_held_is_taken_once() -> None:
    held: Held[str] = Held()
    held.hold(b"1", "one")
    assert (held.take(b"2"), held.take(b"1"), held.take(b"1")) == (None, "one", None)
    assert len(held) == 0


def test_what_nobody_takes_is_let_go() -> None:
    now = [0.0]
    held: Held[str] = Held(10.0, lambda: now[0])
    for moment, version in ((0, b"old"), (5, b"other"), (9, b"old"), (15.5, b"new")):
        now[0] = moment
        held.hold(version, version.decode())
    assert len(held) == 2, "the other one was not used for 10.5 s, the old one for 6.5"
    assert (held.take(b"other"), held.take(b"old"), held.take(b"new")) == (None, "old", "new")


def test_of_too_many_the_one_that_was_used_longest_ago_is_let_go() -> None:
    held: Held[int] = Held(most=2)
    for version in (b"1", b"2", b"1", b"3"):
        held.hold(version, int(version))
    assert [held.take(version) for version in (b"1", b"2", b"3")] == [1, None, 3]


def test_nothing_is_held_for_no_time() -> None:
    held: Held[str] = Held(-1.0)
    held.hold(b"1", "one")
    assert held.take(b"1") is None


def test_of_many_threads_one_gets_it() -> None:
    held: Held[int] = Held()
    versions = [new_version() for _ in range(2_000)]
    for number, version in enumerate(versions):
        held.hold(version, number)
    found: list[list[int | None]] = [[] for _ in range(4)]

    def take(into: list[int | None]) -> None:
        into.extend(held.take(version) for version in versions)

    threads = [threading.Thread(target=take, args=(into,)) for into in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for into in found for number in into if number is not None) == list(range(2_000))


def test_versions_are_new() -> None:
    """128 random bits: two of a thousand are equal with a chance below 2e-33."""
    versions = {new_version() for _ in range(1_000)}
    assert len(versions) == 1_000 and set(map(len, versions)) == {VERSION_BYTES}
