"""Learns the tokens of a prefix alphabet from public text, by byte-pair merges of characters.

The text has one value per line, such as public host names or a list of words; a line that occurs twice counts twice.
Never learn tokens from reported values or from other private text: they are part of the collection, which everybody can
read. The output is a JSON list, the value of "tokens" in the collection's alphabet.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from uldp_transforms.files.text_files import read_text
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.ldp.alphabets.prefixes import MAX_TOKENS, Prefixes
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

NUMBER = 2000
"""Default number of tokens."""


def merge_tokens(texts: Iterable[str], number: int) -> list[str]:
    """Learn tokens: characters, and repeated merges of the most frequent pair of neighbours (byte-pair encoding).

    Of equally frequent pairs the lexicographically first is merged, so that equal texts give equal tokens.

    Args:
        texts: canonical texts.
        number: number of tokens; fewer are returned if no pair occurs twice.

    Source: Gage 1994; Sennrich, Haddow and Birch 2016.
    """
    weights = Counter(texts)
    pieces = [list(text) for text in weights]
    times = list(weights.values())
    characters: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    where: dict[tuple[str, str], set[int]] = defaultdict(set)
    for index, (piece, weight) in enumerate(zip(pieces, times)):
        for character in piece:
            characters[character] += weight
        _count(piece, index, weight, pairs, where)
    tokens = sorted(characters, key=lambda c: (-characters[c], c))[:number]
    known = set(tokens)
    queue = [(-often, pair) for pair, often in pairs.items()]
    heapq.heapify(queue)
    while len(tokens) < number and queue:
        often, pair = heapq.heappop(queue)
        if -often != pairs[pair]:  # outdated entry: later merges changed the count
            if pairs[pair]:
                heapq.heappush(queue, (-pairs[pair], pair))
            continue
        if -often < 2:
            break
        merged = pair[0] + pair[1]
        changed: set[tuple[str, str]] = set()
        for index in sorted(where.pop(pair)):
            _count(pieces[index], index, -times[index], pairs, where)
            pieces[index] = _merged(pieces[index], pair)
            _count(pieces[index], index, times[index], pairs, where)
            changed.update(other for other in itertools.pairwise(pieces[index]) if merged in other)
        pairs.pop(pair, None)
        for other in changed:
            heapq.heappush(queue, (-pairs[other], other))
        if merged not in known:
            known.add(merged)
            tokens.append(merged)
    return tokens


def _count(
    piece: Sequence[str],
    index: int,
    weight: int,
    pairs: Counter[tuple[str, str]],
    where: dict[tuple[str, str], set[int]],
) -> None:
    """Add the neighbouring pairs of a text to the counts, or subtract them if the weight is negative."""
    for pair in itertools.pairwise(piece):
        pairs[pair] += weight
        if weight > 0:
            where[pair].add(index)
        elif pairs[pair] <= 0:
            del pairs[pair]


def _merged(piece: Sequence[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    joined = False
    for left, right in zip(piece, [*piece[1:], ""]):
        if joined:
            joined = False
        elif (left, right) == pair:
            merged.append(left + right)
            joined = True
        else:
            merged.append(left)
    return merged


def _most(texts: Sequence[str], tokens: Sequence[str]) -> int:
    """The 90th percentile of the numbers of tokens per text, without END; training texts need few tokens."""
    alphabet = Prefixes(num_buckets=2, tokens=tuple(tokens), lengths=(None,))
    sizes = sorted(len(alphabet.sequence(text)) - 1 for text in texts)
    return sizes[math.ceil(0.9 * len(sizes)) - 1]


def configure(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("tokens", description=__doc__)
    add = parser.add_argument
    add("--from", dest="text", required=True, help="file of public text, one value per line (UTF-8)")
    add("--number", type=cli.positive(), default=NUMBER, help="number of tokens")
    add("--output", required=True, help="where to write the tokens: a JSON file")
    args = parser.parse_args(argv)
    if args.number > MAX_TOKENS:
        raise SpecError(f"--number must be at most {MAX_TOKENS}, got {args.number}")
    args.texts = [line for line in map(str.strip, canonical(read_text(args.text)).splitlines()) if line]
    if not args.texts:
        raise SpecError(f"--from must be a file with text, got {args.text!r} without any")
    return args


def job(args: argparse.Namespace) -> int:
    """Learn the tokens, write them, and print statistics."""
    tokens = merge_tokens(args.texts, args.number)
    with whole_file(args.output) as file:
        file.write((json.dumps(tokens, ensure_ascii=False) + "\n").encode("utf-8"))
    alone = sum(len(token) == 1 for token in tokens)
    print(f"tokens: {len(tokens)} from {len(args.texts)} line(s), {alone} of them single characters", file=sys.stderr)
    print(f"tokens: nine texts in ten take at most {_most(args.texts, tokens)} of them", file=sys.stderr)
    return cli.DONE


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("tokens", configure, job, argv, faults_of_job=(OSError,))


if __name__ == "__main__":
    uldp.run_program("tokens")
