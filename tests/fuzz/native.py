"""Compares the compiled part with numpy: ``python -m tests.fuzz.native --messages 1000000 --sanitize``.

Spoiled and good messages are decoded by both, thousands in one call, as a list and in one buffer; batches, rejections
and numbers must be equal. Spoiled and good files are read by both.
With ``--sanitize`` the compiled part is built with AddressSanitizer and UndefinedBehaviorSanitizer, which end the
process at the first access outside of a message or of a column. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.fuzz import fuzz
from tests.fuzz.fuzz_inputs import Fuzzer, chunks
from tests.support import compiled_part
from tests.support.compiled_part import COMPILED, NUMPY, build, compiler, decoding_with, load
from tests.support.messages_cases import NOON
from uldp_transforms.messages.joined_messages import JoinedMessages

SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_BUILT = "ULDP_SANITIZED_PART"
_MESSAGES_OF_A_FILE = 100


def compare(side: str, messages: Sequence[bytes], first: int) -> Counter[str]:
    """Decode with both parts; returns how many messages and accepted reports there were.

    Raises:
        Escape: if anything in the results differs, but for the order of rejections.
    """
    decode, _ = fuzz.SIDES[side]
    arrivals = first + np.arange(len(messages))
    joined = JoinedMessages.join(messages)
    with decoding_with(NUMPY):
        plain, *others = (decode.decode(form, arrivals) for form in (messages, joined))
    with decoding_with(COMPILED):
        others += (decode.decode(form, arrivals) for form in (messages, joined))
    for other in others:
        fuzz.require(plain.batches == other.batches, "other batches")
        fuzz.require(Counter(plain.rejections) == Counter(other.rejections), "other rejections")
        fuzz.require(plain.num_received == other.num_received, "other numbers")
        fuzz.require(plain[3:] == other[3:], "other limits or strangers")
    return Counter(messages=len(messages), accepted=sum(map(len, plain.batches)))


def compare_file(content: bytes) -> Counter[str]:
    """Read a file with both parts, and compare both with the reference; returns what ``check_file`` does.

    Raises:
        Escape: if anything in the results differs.
    """
    found = []
    for part in (NUMPY, COMPILED):
        with decoding_with(part):
            found.append(fuzz.check_file(content))
    fuzz.require(found[0] == found[1], "a file is read differently")
    return found[1]


def _again_with_sanitizers(argv: Sequence[str]) -> int:
    """Run this program with the sanitizers' library, which a process must load first."""
    name = "libclang_rt.asan-x86_64.so" if "clang" in (compiler() or "") else "libasan.so"
    asked = subprocess.run([compiler() or "cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        more = {_BUILT: str(build(Path(folder), SANITIZED)), "LD_PRELOAD": asked.stdout.strip()}
        more |= {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "PYTHONMALLOC": "malloc"}
        return subprocess.run(
            [sys.executable, "-m", "tests.fuzz.native", *argv], env=os.environ | more, check=False
        ).returncode


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    args = parser.parse_args(argv)
    if (reason := compiled_part.missing()) is not None:
        print(f"the compiled part cannot be built: {reason}", file=sys.stderr)
        return 1
    if args.sanitize and _BUILT not in os.environ:
        return _again_with_sanitizers([f"--messages={args.messages}", f"--seed={args.seed}", "--sanitize"])
    if args.sanitize:
        module = load(Path(os.environ[_BUILT]))
        compiled_part.built = lambda: module  # type: ignore[assignment]  # the one built with sanitizers, not a cached one
    fuzzer, tally, escapes = Fuzzer(args.seed), Counter[str](), 0
    for call, size in enumerate(chunks(args.messages, fuzz.CALL)):
        messages = fuzzer.messages(size)
        try:
            tally += compare(("files", "stream")[call % 2], messages, NOON)
            for _ in range(size // _MESSAGES_OF_A_FILE):
                tally += compare_file(fuzzer.file())
        except fuzz.Escape as escape:
            escapes += 1
            print(f"call {call}: {escape}", file=sys.stderr)
    how = "with sanitizers" if args.sanitize else "without sanitizers"
    print(f"{tally['messages']:,} messages {how}, {tally['accepted']:,} reports accepted; seed {args.seed}")
    print(f"{tally['files']:,} files, {tally['messages_of_files']:,} messages in them")
    print(f"{escapes} escapes")
    return 1 if escapes else 0


if __name__ == "__main__":
    sys.exit(main())
