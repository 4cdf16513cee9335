"""Describes a collection in plain words: what people are asked, what is sent, what is protected, what it costs over
time, and what it can find. For a privacy review, or the text of a consent dialog.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.records.collection_facts import facts_of, sensitive_in_words, sensitive_values
from uldp_transforms.jobs.records.unknown_repeats import sentences_about_lookalikes
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets.dimensions import ATTRIBUTE, CLIENT, GATEWAY
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.confidence import CONFIDENCE, percent
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.mechanisms.channels.declared_channel import DeclaredChannel
from uldp_transforms.ldp.solvers.intervals import quantile
from uldp_transforms.messages import wire

SIZES = (1_000, 10_000, 100_000, 1_000_000)
"""Numbers of reports for which the precision is shown by default."""

MOST_NAMED = 20
"""Maximum number of values that are named."""

COMMON = 0.1
"""Share of the value whose precision is shown."""

_YEAR = 365 * 86_400_000
_MOST_PROBABILITIES = 36
_FOUND = 0.8  # probability that a value of the smallest share is told apart from 0
_STEPS = 100
_LARGE = 700.0  # epsilon whose exponential is a floating-point number
_WIDTH = 88
_PLAIN = ("every value", "sensitive values")  # beginnings of promises that hold whatever an observer knows
_LEGEND = (
    f"+-: half of the {percent(CONFIDENCE)} interval of a value of {100 * COMMON:g} % of {{many}}. found: the smallest "
    f"share that is told apart from 0 in about {100 * _FOUND:g} % of such windows. Both are approximations for one "
    "value that is looked at by itself; hash functions add noise if cohorts are few."
)
_OF_TEXTS = " Only texts that the collector looks for are found."
_OF_NUMBERS = " A value is a single bin here; means, quantiles and shares above limits are more precise."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """Options of a description."""

    collection: Collection
    sizes: tuple[int, ...]


def configure(argv: Sequence[str]) -> Description:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("describe", description=__doc__)
    parser.add_argument("collection", metavar="C.json", help="JSON file of the collection")
    parser.add_argument(
        "--reports",
        type=int,
        action="append",
        help="number of reports per window for which to show the precision; may be given several times (default: "
        "1,000 to 1,000,000)",
    )
    args = parser.parse_args(argv)
    for number in args.reports or ():
        require_int("--reports", number, 1, 10**15)
    [collection] = read_collections([args.collection])
    return Description(collection=collection, sizes=tuple(args.reports or SIZES))


def job(description: Description) -> int:
    """Print the description."""
    print("\n".join(lines_of(description.collection, description.sizes)))
    return cli.DONE


def lines_of(collection: Collection, sizes: Sequence[int] = SIZES) -> Iterator[str]:
    """The lines of a description."""
    yield f"{collection.id}, version {collection.version}"
    for name, text in _facts(collection):
        yield ""
        yield f"{name}:"
        yield from _paragraph(text)
    yield ""
    yield "What it can find:"
    yield from (f"  {line}" for line in aligned(_precision(collection, sizes)))
    is_open = collection.alphabet.known_values is None
    legend = _LEGEND.format(many=collection.noun.many)
    yield from _paragraph(legend + _OF_TEXTS * is_open + _OF_NUMBERS * (collection.alphabet.bin_edges is not None))
    yield ""
    yield "Sentences for the people who are asked:"
    yield from _paragraph(consent(collection))


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _facts(collection: Collection) -> Iterator[tuple[str, str]]:
    values = collection.alphabet.known_values
    protected = sensitive_values(collection)
    if collection.alphabet.bin_edges is not None:
        if protected is not None:
            yield "Sensitive", sensitive_in_words(collection)
    elif values is not None:
        yield "Values", _named(values)
        if protected is not None:
            yield "Sensitive values", _named(tuple(value for value in values if value in protected))
    elif collection.alphabet.clear_values:
        yield "Values that are public and not sensitive", _named(collection.alphabet.clear_values)
    if tags := getattr(collection.alphabet, "tags", ()):
        yield (
            "Tags",
            (
                f"{_named(tags)}. A device sends a tag in place of a value that is sensitive to its own person. Which "
                "values a tag hides stays on the device. Tags are protected like sensitive values, but a value that is "
                "sent in clear shows that its person hides it behind no tag"
            ),
        )
    yield from facts_of(collection, {})
    if (probabilities := _probabilities(collection)) is not None:
        yield "Probabilities of the outputs", probabilities
    if collection.question is not None:
        yield "Counted together", f"with other versions of this collection that name the question {collection.question}"
    for title, setter in (
        ("Stated about the person in clear, without any protection", CLIENT),
        ("Added in clear by the gateway, from a header of the request", GATEWAY),
        ("Added in clear by the reader of the queue, from an attribute of the message", ATTRIBUTE),
    ):
        stated = [f"{one.name} ({_named(one.all_values)})" for one in collection.dimensions if one.set_by == setter]
        if stated:
            yield title, "; ".join(stated)
    for sentence in sentences_about_lookalikes([collection]):
        yield "Look at these values", sentence
    yield "Beside the perturbed answer, a report has in clear", _in_clear(collection)
    yield "Over time", _over_time(collection)


def _named(values: Sequence[str]) -> str:
    more = len(values) - MOST_NAMED
    names = ", ".join(map(printable, values[:MOST_NAMED]))
    return f"{names} and {more:,} more" if more > 0 else names


def _probabilities(collection: Collection) -> str | None:
    """The columns of a declared matrix, if they are few; None for other mechanisms."""
    mechanism, values = collection.mechanism, collection.alphabet.known_values
    if not isinstance(mechanism, DeclaredChannel) or values is None:
        return None
    if mechanism.num_outputs * len(values) > _MOST_PROBABILITIES:
        return f"a declared matrix of {mechanism.num_outputs:,} outputs for {len(values):,} values"
    columns = zip(values, zip(*mechanism.probabilities.tolist()))
    return "; ".join(
        f"{printable(value)}: {', '.join(f'output {y} {100 * share:.3g} %' for y, share in enumerate(column))}"
        for value, column in columns
    )


def _in_clear(collection: Collection) -> str:
    most = wire.single_bytes(collection.mechanism.payload_size, collection.num_strata)
    size = f"; at most {most} bytes in all" if _has_clients(collection) else ""
    when = (
        "the hour"
        if collection.client_window is None
        else f"the start of the client window ({collection.client_window})"
    )
    stated = "".join(f"{what}, " for what in collection.mechanism.states)
    stated += "the dimensions above, " if any(one.is_own for one in collection.dimensions) else ""
    cohort = f"a cohort, drawn at random from {collection.num_cohorts:,}, " if collection.num_cohorts > 1 else ""
    return (
        f"the fingerprint of the collection, {stated}{cohort}the time rounded down to {when}, and 16 random bytes by "
        f"which duplicates are found{size}. The network sees the address of the sender"
    )


def _has_clients(collection: Collection) -> bool:
    return getattr(collection.mechanism, "clients", "own") == "own"


def _over_time(collection: Collection) -> str:
    mechanism, window = collection.mechanism, collection.asked
    if math.isinf(mechanism.epsilon):
        return "nothing is promised for one report, and nothing for more"
    if window is None:
        number = 100
        text = (
            "the collection names no client_window, so only the app knows how often a person reports. Of the same "
            f"value, 10 reports cost epsilon {_cost(mechanism, 10)}, and {number} reports {_cost(mechanism, number)}"
        )
    else:
        number = window.number_between(0, _YEAR)
        text = (
            f"a client reports at most once in each window of {collection.client_window}: {number:,} reports in 365 "
            f"days, which together cost epsilon {_cost(mechanism, number)} for somebody whose value never changes"
        )
    sure = _by_level(mechanism, list(map(_sure, mechanism.epsilons_after(number))))
    return f"{text}. After them, an observer who found two values equally likely may be {sure} sure of one"


def _cost(mechanism: Mechanism, num_reports: int) -> str:
    return _by_level(mechanism, [f"{epsilon:.4g}" for epsilon in mechanism.epsilons_after(num_reports)])


def _by_level(mechanism: Mechanism, texts: Sequence[str]) -> str:
    """What holds for all guarantees, or for each: a text of each, with its name if they differ."""
    if len(set(texts)) == 1:
        return texts[0]
    named = [f"{text} ({one.of})" for text, one in zip(texts, mechanism.guarantees)]
    return f"{', '.join(named[:-1])} or {named[-1]}"


def _sure(epsilon: float) -> str:
    doubt = 1 / (1 + math.exp(min(epsilon, _LARGE)))
    return f"up to {100 * (1 - doubt):.1f} %" if doubt > 1e-3 else "more than 99.9 %"


def _precision(collection: Collection, sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """A header and one row per number of reports: for a sensitive value and, if there are any, for others."""
    mechanism = collection.mechanism
    kinds = mechanism.examples if math.isfinite(mechanism.epsilon) else {"value": 0}
    heads = [f"{kind} {what}" for kind in kinds for what in ("+-", "found")]
    rows: list[tuple[str, ...]] = [("reports", *heads)]
    for size in sizes:
        cells = []
        for symbol in kinds.values():
            half = float(quantile(np.inf, CONFIDENCE)) * math.sqrt(variance_at(collection, symbol, COMMON) / size)
            smallest = smallest_share(collection, symbol, size)
            cells += [f"{100 * half:.3g} points" if half < 1 else "nothing", _percent(smallest)]
        rows.append((f"{size:,}", *cells))
    return rows


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.3g} %"


def variance_at(collection: Collection, symbol: int, share: float) -> float:
    """Variance of one report's estimate of a value with this share, all other symbols being equally frequent.

    Args:
        collection: the collection.
        symbol: a symbol of the value; hashed values share it with others.
        share: of the value.
    """
    mechanism, alphabet = collection.mechanism, collection.alphabet
    size, hashes = mechanism.num_symbols, alphabet.num_hashes
    known = alphabet.known_values
    own = symbol >= alphabet.num_sensitive or (known is not None and bool(alphabet.has_own_symbol(known[:1]).all()))
    held = share if own else share + (1 - share) * hashes / max(alphabet.num_sensitive, 1)
    frequencies = np.full(size, (1 - held) / max(size - 1, 1))
    frequencies[symbol] = held
    variance = float(mechanism.variances(frequencies)[symbol])
    if own:
        return variance
    part = min(hashes / alphabet.num_sensitive, 0.5)
    return variance / (hashes * (1 - part))


def smallest_share(collection: Collection, symbol: int, num_reports: int) -> float | None:
    """The smallest share that is told apart from 0 with probability about ``_FOUND``; None if even 1 is not.

    Its estimate must exceed 0 by the half width of an interval at 0, where the variance is less than at the share.
    """

    def deviation(share: float) -> float:
        return math.sqrt(max(variance_at(collection, symbol, min(share, 1.0)), 0) / num_reports)

    least = float(quantile(np.inf, CONFIDENCE)) * deviation(0.0)
    share = least
    for _ in range(_STEPS):
        share = least + float(quantile(np.inf, 2 * _FOUND - 1)) * deviation(share)
    if rate := _proof_rate(collection.mechanism, symbol):  # one such report is enough
        share = max(share, -math.log(1 - _FOUND) / (num_reports * rate))
    return share if share < 1 else None


def _proof_rate(mechanism: Mechanism, symbol: int) -> float:
    """Probability that a person with this symbol sends a report that nobody else can send."""
    if symbol >= mechanism.num_sensitive:
        return float(mechanism.reveal_rate)
    if not isinstance(mechanism, DeclaredChannel):
        return 0.0
    proofs = np.count_nonzero(mechanism.probabilities, axis=1) == 1
    return float(mechanism.probabilities[proofs, symbol].sum())


def consent(collection: Collection) -> str:
    """Sentences for a dialog."""
    mechanism = collection.mechanism
    if math.isinf(mechanism.epsilon):
        return "None: a report can rule values out, so no promise can be made."
    if not _has_clients(collection):
        return "None: the answers are randomized elsewhere, not by clients of this library. Say how, in your own words."
    if len(mechanism.guarantees) > 1:
        return "None: what is promised differs between the levels of answers (see above). Find your own words."
    if not mechanism.about.protects.startswith(_PLAIN):
        return "None: what this mechanism protects depends on background knowledge (see above). Find your own words."
    doubt = 1 / (1 + math.exp(min(mechanism.epsilon, _LARGE)))
    sure = f"{100 * (1 - doubt):.0f} %" if doubt > 5e-3 else "more than 99 %"
    some = mechanism.sends_clear
    changed = "A sensitive answer is changed" if some else "Your answer is changed"
    again = _asked_again(collection)
    own, added = ([one.name for one in collection.dimensions if one.is_own is own] for own in (True, False))
    names = [*mechanism.states, *own]
    clear = f" Sent as it is, beside the answer: {', '.join(names)}." if names else ""
    clear += f" Added to it on the way: {', '.join(added)}." if added else ""
    others = " Other answers are often sent as they are." if some else ""
    alike = " of one block" if len(mechanism.confusable) > 1 else ""
    return (
        f"{changed} by chance before it leaves this device.{others} Many answers together show how many "
        f"{collection.noun.many} of each kind there are. One report alone says little: whoever thought two "
        f"answers{alike} equally likely before can be at most {sure} sure which of them "
        f"{'a sensitive one was' if some else 'is yours'}.{again}{clear}"
    )


def _asked_again(collection: Collection) -> str:
    """What further answers of the same person tell, for a dialog."""
    mechanism, window = collection.mechanism, collection.asked
    if window is None:
        if mechanism.epsilon_after(10) <= mechanism.epsilon:
            return ""
        return " Each further answer tells more about a value that stays the same."
    number = window.number_between(0, _YEAR)
    doubt = 1 / (1 + math.exp(min(mechanism.epsilon_after(number), _LARGE)))
    sure = f"at most {100 * (1 - doubt):.0f} %" if doubt > 5e-3 else "more than 99 %"
    return f" You may answer {number:,} times a year; if your answer never changes, they can then be {sure} sure."


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("describe", configure, job, argv)


if __name__ == "__main__":
    uldp.run_program("describe")
