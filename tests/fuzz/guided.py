"""Fuzzing that is guided by coverage, with a corpus: ``python -m tests.fuzz.guided --seconds 60``.

An input that makes the traced code go from one line to another for the first time is kept, and later inputs are changed
from it. The corpus is in ``tests/fuzz/corpus``, one input per line in hexadecimal digits; ``make test`` reads it again.
``--keep`` adds what a run has found, without inputs whose steps others have too.

The targets read what strangers can write: messages, files, a client's storage, collections, output directories;
``packages.gateway.tests.support.http_heads`` adds HTTP requests. A target may refuse its input with ``SpecError`` and
nothing else; messages and files are also compared with the slow reference, whose steps guide too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tests.fuzz import fuzz, fuzz_reference
from tests.fuzz.fuzz_inputs import Fuzzer
from tests.support.messages_cases import KRR, URR
from uldp_transforms.jobs import check
from uldp_transforms.jobs.records import killed_runs, ledger_sums, run_accounts, run_records, superseded_files
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp import checks as ldp_checks
from uldp_transforms.ldp import collection as collection_module
from uldp_transforms.ldp.client import client_state
from uldp_transforms.ldp.client.client_state import new_state, read_state, state_text
from uldp_transforms.messages import containers, decoder, wire

CORPUS = Path(__file__).with_name("corpus")
LONGEST = 4096
"""Bytes of an input."""

Edges = frozenset[tuple[str, int, int]]

_NOW = "2026-11-22T08:15:03.042Z"
_RUN = "20261122T081503.042Z-4f2a9c"


class Target(NamedTuple):
    """What is fuzzed.

    Attributes:
        work: takes an input; refuses it with SpecError, or takes it.
        modules: whose lines guide.
        seeds: first inputs.
    """

    work: Callable[[bytes], object]
    modules: tuple[Any, ...]
    seeds: Callable[[], list[bytes]]


# ---------------------------------------------------------------------- targets


def _messages(content: bytes) -> None:
    for side in ("files", "stream"):
        fuzz.check_messages(side, [content])


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError("the input must be UTF-8") from None


def _storage(content: bytes) -> None:
    """What is taken is taken again after it was written, as the same state."""
    state = read_state(_text(content))
    assert read_state(state_text(state)) == state


def _collection(content: bytes) -> None:
    """What is taken has a fingerprint, and is the same collection after it was written."""
    text = _text(content)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        taken = Collection.from_json(file.name)
    assert Collection.from_json(taken.to_json()).fingerprint == taken.fingerprint


def _directory(content: bytes) -> None:
    """The files of a directory, separated by zero bytes: record, estimates, ledger, accounts, journal."""
    names = (f"run-{_RUN}.json", f"estimates-{_RUN}-x.jsonl", f"ledger-{_RUN}-x.jsonl", f"accounts-{_RUN}.json")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for name, part in zip((*names, "compacting.json"), content.split(b"\0")):
            Path(folder, name).write_bytes(part)
        task = check.configure([folder])
        assert check.job(task) in (0, 1)


def _directories() -> list[bytes]:
    record = {
        **{"run": _RUN, "software": "x", "started": _NOW, "ended": None, "launched": False, "end": None},
        **{"sentence": None, "ledger": None, "specification": {"allowed_lateness": "1h"}},
        "source": {"option": "--x", "name": "x", "bounded": False, "resumes": True},
    }
    place = {"collection_id": "c", "collection_version": 1, "fingerprint": "ab", "run": _RUN}
    place |= {"window_start": "2026-11-22T08:00:00Z", "window_end": "2026-11-22T09:00:00Z"}
    numbers = {"received": 3, "accepted": 2, "duplicates": 0, "rejected": {"too_old": 1}, "in_transit": 0}
    estimate = place | {"status": "ok", "num_reports": 2, "pane_index": 0}
    accounts = {"run": _RUN, "time": _NOW, **numbers}
    journal = {"merged": f"ledger-{_RUN}-y.jsonl", "parts": [f"ledger-{_RUN}-x.jsonl"]}
    parts = (record, estimate, place | numbers, accounts, journal)
    return [b"\0".join(json.dumps(part).encode() for part in parts[:number]) for number in range(1, 6)]


def _states() -> list[bytes]:
    state = new_state(bytes(32), 86_400_000)
    used = {"spent": {"ab" * 32: [1, 1.0]}, "period": 3, "answers": {"cd" * 32: {"5": [7, 0, "00", "ef" * 16]}}}
    return [state_text(state).encode(), state_text(state | used).encode()]


TARGETS: dict[str, Target] = {
    "messages": Target(_messages, (decoder, wire, fuzz_reference), lambda: Fuzzer(1).messages(40)),
    "files": Target(fuzz.check_file, (containers, fuzz_reference), lambda: [Fuzzer(n).file() for n in range(12)]),
    "storage": Target(_storage, (client_state, ldp_checks), _states),
    "collections": Target(
        _collection,
        (collection_module, ldp_checks),
        lambda: [json.dumps(of.to_json()).encode() for of in (KRR, URR)],
    ),
    "directories": Target(
        _directory, (check, run_records, run_accounts, killed_runs, ledger_sums, superseded_files), _directories
    ),
}


# ---------------------------------------------------------------------- steps


def steps_of(target: Target, content: bytes) -> Edges:
    """The steps from line to line that an input makes in the target's modules.

    Raises:
        AssertionError: if anything but SpecError is raised.
    """
    files = {str(module.__file__) for module in target.modules}
    found: set[tuple[str, int, int]] = set()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if name not in files:
            return None
        last = frame.f_lineno

        def line(inner: FrameType, what: str, value: object) -> Any:
            nonlocal last
            found.add((name, last, inner.f_lineno))
            last = inner.f_lineno
            return line

        return line

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        target.work(content)
    except SpecError:
        pass
    except Exception as error:
        raise AssertionError(f"{error!r} for the input {content.hex()}") from error
    finally:
        sys.settrace(before)
    return frozenset(found)


def changed(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """An input with one to four changes: bytes, pieces of the same or of another input, digits, cuts."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(data))
        way = rng.randrange(7)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, *b'{}[]",:-0.eE '))
        elif way == 2:
            del data[at : at + rng.choice((1, 2, 8, 64))]
        elif way == 3:
            begin = rng.randint(0, len(data))
            data[at:at] = data[begin : begin + rng.choice((1, 4, 16, 64))]
        elif way == 4 and other:
            begin = rng.randint(0, len(other) - 1)
            data[at:at] = other[begin : begin + rng.choice((1, 8, 64, 512))]
        elif way == 5:
            data[at:at] = rng.choice((b"null", b"true", b"-1", b"1e999", b"9007199254740993", b'"\\ud800"', b"[[[["))
        else:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 8)))
    return bytes(data[:LONGEST])


def read_corpus(name: str, corpus: Path = CORPUS) -> list[bytes]:
    """The inputs of a target that are kept."""
    path = corpus / f"{name}.txt"
    return [bytes.fromhex(line) for line in path.read_text("ascii").splitlines()] if path.exists() else []


def smallest(found: dict[bytes, Edges]) -> list[bytes]:
    """Some of the inputs that together have all steps, the short ones first."""
    left, kept = set[tuple[str, int, int]]().union(*found.values()), []
    for content in sorted(found, key=lambda one: (len(one), one)):
        if found[content] & left:
            kept.append(content)
            left -= found[content]
    return kept


def explore(
    target: Target, first: Sequence[bytes], seed: int, *, seconds: float = float("inf"), tries: float = float("inf")
) -> tuple[dict[bytes, Edges], int]:
    """Inputs with new steps, from the first ones on; and the number of inputs that were tried.

    Raises:
        AssertionError: as ``steps_of``.
    """
    rng, end = random.Random(seed), time.monotonic() + seconds
    found: dict[bytes, Edges] = {}
    known: set[tuple[str, int, int]] = set()
    tried = 0

    def attempt(content: bytes) -> None:
        nonlocal tried
        tried += 1
        steps = steps_of(target, content)
        if not steps <= known or not found:
            known.update(steps)
            found[content] = steps

    for content in (*first, *(content for content in target.seeds() if len(content) <= LONGEST)):
        attempt(content)
    while tried < tries and time.monotonic() < end:
        pool = list(found)
        attempt(changed(rng.choice(pool[-50:] if rng.random() < 0.5 else pool), rng.choice(pool), rng))
    return found, tried


def main(argv: Sequence[str] | None = None, targets: Mapping[str, Target] = TARGETS, corpus: Path = CORPUS) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="targets whose name has this text")
    parser.add_argument("--keep", action="store_true", help="write the corpus")
    args = parser.parse_args(argv)
    code = 0
    for name in (name for name in targets if args.only in name):
        try:
            found, tried = explore(targets[name], read_corpus(name, corpus), args.seed, seconds=args.seconds)
        except AssertionError as error:
            print(f"{name}: {error}", flush=True)
            code = 1
            continue
        kept = smallest(found)
        steps = len(set[tuple[str, int, int]]().union(*found.values()))
        print(f"{name}: {tried:,} inputs, {steps:,} steps, {len(kept)} inputs have all of them", flush=True)
        if args.keep:
            corpus.mkdir(exist_ok=True)
            (corpus / f"{name}.txt").write_text("".join(f"{one.hex()}\n" for one in kept), encoding="ascii")
    return code


if __name__ == "__main__":
    sys.exit(main())
