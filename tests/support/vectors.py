"""What the files of ``schemas/vectors`` hold: everything that a client computes, for clients in any language.

The records come from the reference client; tests compare them with an independent one, and each client with them.
Randomness is given as 64-bit words, as hexadecimal text, in the order in which a client draws them for one report.

Published records never change: names seed them, published collections keep their numbers, and new records are appended.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.cases import ALL_COLLECTIONS, ANY_VALUES, DECOMPOSED, MECHANISM_CASES, MECHANISMS_TO_TEST, TWO_SIZES
from tests.support.messages_cases import NOON, numbered
from tests.support.tampered_forms import tampered_forms
from tests.support.tolerance import generator
from uldp_transforms.ldp import Budget, BudgetSpentError, Client, Collection, ReportBatch
from uldp_transforms.ldp.client.budget import cost_of_reports
from uldp_transforms.ldp.client.client_form import client_form, form_fingerprint
from uldp_transforms.ldp.client.keyed_words import COHORT, MEMO, TURN, KeyedSource
from uldp_transforms.ldp.client_window import DAY
from uldp_transforms.ldp.collection import _without_floats
from uldp_transforms.ldp.hashing import canonical, hash_words
from uldp_transforms.ldp.mechanisms import (
    MECHANISMS,
    DeclaredChannel,
    Mechanism,
    NestedLevels,
    TwoStage,
    UtilityOptimizedSquareWave,
)
from uldp_transforms.ldp.mechanisms.public_blocks.within_blocks import WithinBlocks
from uldp_transforms.messages import wire
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, moment_of

FOLDER = Path(__file__).parents[2] / "schemas" / "vectors"

LAST = (1 << 64) - 1
"""The largest word."""

Record = dict[str, Any]


@functools.cache
def published(name: str) -> list[Record]:
    """The records of a file of the folder, as it was before this program wrote any; none if there is no such file."""
    path = FOLDER / name
    records: list[Record] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return records


def appended(name: str, records: Iterator[Record]) -> Iterator[Record]:
    """The same records, those that the file has in its order, all others behind them."""
    places = {json.dumps(record): place for place, record in enumerate(published(name))}
    yield from sorted(records, key=lambda record: places.get(json.dumps(record), len(places)))


class Words:
    """A source of words that begins with given ones, goes on with those of a generator, and remembers all."""

    def __init__(self, first: Sequence[int], *names: object):
        self._first, self._rng = list(first), generator("vectors", *names)
        self.drawn: list[str] = []

    def words(self, *shape: int) -> np.ndarray:
        size = int(np.prod(shape, dtype=np.int64))
        given, self._first = self._first[:size], self._first[size:]
        drawn = self._rng.integers(0, 1 << 64, size=size - len(given), dtype=np.uint64)
        words = np.concatenate([np.array(given, dtype=np.uint64), drawn])
        self.drawn += [f"{word:016x}" for word in words.tolist()]
        return words.reshape(shape)


# ---------------------------------------------------------------------- collections

TEXTS = (
    "",
    " ",
    DECOMPOSED,
    "\N{FOX FACE}",
    "\u65e5\u672c\u8a9e",
    'a"b\\c',
    "\x00\x01\n\x1f\x7f",
    "\u2028",
    "/",
    "A",
    "a",
)
"""Values that a careless client changes: empty, blank, not in NFC, beyond 16 bits, escaped in JSON, of either case."""

NUMBERS = ("0.1", "-1.5", "-2", "0", "-0", "0.09999999999999999", "1e6", "12", "1e400", "2.5E+1", "5e-324")
"""Texts of numbers that a careless client changes: at edges, below and above all, beyond floats."""


def _spec(name: str, alphabet: dict[str, Any], mechanism: dict[str, Any], num_cohorts: int = 1) -> dict[str, Any]:
    with_epsilon = ({"epsilon": 1.0} if MECHANISMS[mechanism["id"]].takes("epsilon") else {}) | mechanism
    return {"id": name, "version": 1, "alphabet": alphabet, "mechanism": with_epsilon, "num_cohorts": num_cohorts}


_ILLNESSES = {"id": "closed", "values": ["flu", "cold", "gout", "asthma", "hiv"], "sensitive": ["gout", "hiv", "flu"]}
_LISTED = {"id": "hashed", "num_buckets": 9, "seed": 3, "non_sensitive": [*TEXTS[:4], "b", "c"]}

_PREFIXES = {
    "id": "prefixes",
    "num_buckets": 4096,
    "seed": LAST,
    "tokens": [DECOMPOSED, "a", 'a"', "\u65e5\u672c", "\u672c", "\N{FOX FACE}", "\\c"],
    "lengths": [1, 3, None],
}

_BLOCKS = {
    "10": ["a", "A", "b"],
    "2": [DECOMPOSED, "/"],
    "\u00df": ["c"],
    "\N{FOX FACE}": ["d", "e"],
    "\uffee": ["f", "g"],
}
"""Names that JSON readers put in other orders."""

_SITES = {"id": "blocks", "blocks": [f"{number}.org" for number in range(300)]}
_SITES["members"] = {"id": "hashed", "num_buckets": 5, "seed": LAST, "non_sensitive": ["7.org/a", "299.org/b", "7.org"]}

_HOURS = {"id": "ordered", "low": 0, "high": 24, "num_bins": 24, "others": ["never", "secret"]}
_HOURS |= {"sensitive": [[None, 6.5], [22, 24], "secret"]}
_LEVELS = [{"epsilon": 0.5, "values": ["hiv"]}, {"epsilon": 2, "values": ["flu", "gout"]}]
_WIDE = [
    {"epsilon": epsilon, "values": numbered(300)["values"][low:high]}
    for epsilon, low, high in ((1e-5, 0, 3), (1, 3, 13), (16, 13, 40))
]
SPECS = {
    spec["id"]: spec
    for spec in (
        *(_spec(f"order-{mechanism}", _ILLNESSES, {"id": mechanism}) for mechanism in ("krr", "urap", "uhr")),
        _spec("texts", {"id": "closed", "values": list(TEXTS), "sensitive": list(TEXTS[4:1:-1])}, {"id": "uss"}),
        _spec("texts-tagged", {"id": "tagged", "values": list(TEXTS), "tags": ["z", "\u00df"]}, {"id": "urr"}),
        _spec("texts-permuted", {"id": "permuted", "values": list(TEXTS), "num_buckets": 4}, {"id": "krr"}, 5),
        _spec("texts-listed", _LISTED, {"id": "urap", "theta": 0.5}, 3),
        _spec("texts-prefixes", _PREFIXES | {"num_buckets": 256}, {"id": "krr"}, 9),
        _spec("texts-prefixes-listed", _PREFIXES | {"non_sensitive": list(TEXTS[:5])}, {"id": "urr"}, 7),
        _spec("seed-largest", {"id": "hashed", "num_buckets": 5, "seed": LAST}, {"id": "krr"}, 65536),
        _spec("seed-odd", {"id": "hashed", "num_buckets": 70, "seed": (1 << 53) + 1}, {"id": "rappor"}, 4),
        _spec("hashes-8", {"id": "hashed", "num_buckets": 8, "num_hashes": 8}, {"id": "rappor", "epsilon": 0.7}, 2),
        _spec("numbers-small", numbered(4, 3), {"id": "urap", "epsilon": 1e-05, "theta": 1e-07}),
        _spec("numbers-large", numbered(4, 3), {"id": "urap", "epsilon": 16, "theta": "optimal"}),
        _spec("numbers-priors", numbered(3), {"id": "agrr", "priors": [[0.99995, 5e-05, 0], [0, 0.5, 0.5]]}),
        _spec("one-sensitive", numbered(3, 1), {"id": "uss"}),
        _spec("bytes-2", numbered(257), {"id": "tsp", "missing_rates": [0.4, 0.05]}),
        _spec("bytes-4", {"id": "hashed", "num_buckets": 65536, "non_sensitive": ["a", "b"]}, {"id": "urr"}, 2),
        _spec("clear-bytes-2", numbered(259, 3), {"id": "uss", "subset_size": 2}),
        _spec(
            "clear-bytes-3",
            {"id": "hashed", "num_buckets": 3, "non_sensitive": ["a", "b"], "num_clear_buckets": 65536},
            {"id": "urap", "inversion": "marginal"},
            2,
        ),
        *(_spec(f"spare-bits-{mechanism}", numbered(9), {"id": mechanism}) for mechanism in ("rappor", "ss", "hr")),
        _spec("two-sizes", numbered(9, 6), {"id": "uss", "subset_size": 1, "larger_share": 0.3}),
        _spec("two-sizes-all", numbered(5), {"id": "ss", "subset_size": 2, "larger_share": 1e-6}),
        _spec("direct", numbered(3), {"id": "channel", "matrix": [["0", "1", "0"], ["1", "0", "0"], ["0", "0", "1"]]}),
        _spec("bins-wave", {"id": "ordered", "low": 0, "high": 450, "num_bins": 32, "unit": "min"}, {"id": "sw"}),
        *(_spec(f"bins-night-{mechanism}", _HOURS, {"id": mechanism}) for mechanism in ("usw", "urr", "krr")),
        _spec(
            "bins-log",
            {"id": "ordered", "low": 0.1, "high": 1e5, "num_bins": 9, "scale": "log", "others": [DECOMPOSED, ""]},
            {"id": "sw", "epsilon": 2, "half_width": 3},
        ),
        _spec(
            "texts-permuted-listed",
            {"id": "permuted", "values": list(TEXTS), "num_buckets": 3, "seed": 1, "sensitive": list(TEXTS[6:1:-1])},
            {"id": "urr"},
            4,
        ),
        _spec(
            "texts-permuted-twice",
            {"id": "permuted", "values": list(TEXTS), "num_buckets": 6, "seed": LAST, "num_hashes": 2},
            {"id": "rappor"},
            3,
        ),
        *(
            _spec(f"levels-{of}", _ILLNESSES, {"id": "levels", "levels": _LEVELS, "of": of})
            for of in ("urr", "uss", "urap")
        ),
        _spec(
            "levels-hashed",
            _LISTED,
            {"id": "levels", "levels": [{"epsilon": 1}, {"epsilon": 2.5, "values": [" ", ""]}]},
            3,
        ),
        _spec("levels-wide", numbered(300, 40), {"id": "levels", "levels": _WIDE}),
        _spec(
            "blocks-texts",
            {"id": "blocks", "blocks": _BLOCKS, "sensitive": ["g", "a", "b", "/", "d", "f"]},
            {"id": "uss"},
        ),
        _spec("blocks-all", {"id": "blocks", "blocks": {"b": ["x", "y"], "a": ["z", "w", "v"]}}, {"id": "ss"}),
        _spec("blocks-300", _SITES, {"id": "urr"}, 3),
        _spec("hashes-16", {"id": "hashed", "num_buckets": 40, "num_hashes": 16}, {"id": "rappor", "epsilon": 16}, 3),
    )
}
"""Edge cases as they stand in a file: texts need not be canonical."""


def _numbered_collections() -> dict[str, Collection]:
    """Those that have published reports first, in their order: the place of a collection is its number for ever."""
    found = {name: item for name, item in ALL_COLLECTIONS.items() if name not in TWO_SIZES}
    found |= {name: Collection.from_json(spec) for name, spec in SPECS.items()}
    known = [record["collection"] for record in published("reports.json")]
    return {name: found[name] for name in (*known, *found) if name in found}


COLLECTIONS = _numbered_collections()


def _values_of(name: str) -> list[str]:
    """Values that a client may have, as they stand in a file; none if they may be any texts."""
    alphabet = SPECS.get(name, COLLECTIONS[name].to_json())["alphabet"]
    if alphabet["id"] == "ordered":
        return [*NUMBERS, *alphabet.get("others", [])]
    if alphabet["id"] == "blocks":
        blocks = alphabet["blocks"]
        if isinstance(blocks, dict):
            return [value for own in blocks.values() for value in own]
        listed = alphabet["members"].get("non_sensitive", [])
        return [*blocks[:2], *listed, *(f"{blocks[-1]}/{text}" for text in TEXTS)]
    values: list[str] = alphabet.get("values", [])
    return values


def collections() -> Iterator[Record]:
    """A collection and its client's form, which holds the canonical JSON and the fingerprint."""
    for name, item in COLLECTIONS.items():
        yield {"name": name, "collection": SPECS.get(name, item.to_json()), "client": client_form(item)}


def numbers() -> Iterator[Record]:
    """Numbers with a fraction as they stand in canonical JSON."""
    for number in (0.0, 1.0, 16.0, 0.1, 0.3, 2 / 3, 1.5, 0.001, 1e-4, 9.999e-05, 1e-05, 1.25e-07, 5e-324, 2.0**-10):
        yield {"number": number, "text": _without_floats(number)}


def weights() -> Iterator[Record]:
    """The integers of a mechanism: those of the canonical JSON, and what a client draws with."""
    for mechanism in MECHANISMS_TO_TEST:
        yield {
            "mechanism": mechanism.to_json(),
            "num_symbols": mechanism.num_symbols,
            "num_sensitive": mechanism.num_sensitive,
            "num_hashes": mechanism.num_hashes,
            **({"num_others": mechanism.num_others} if mechanism.num_others else {}),
            "weights": {
                name: weight if isinstance(weight, list) else str(weight)
                for name, weight in mechanism.exact_weights.items()
            },
            "sampler": mechanism.client_sampler,
            "payload": mechanism.client_payload,
        }


# ---------------------------------------------------------------------- values and symbols


def hashes() -> Iterator[Record]:
    """Words of the hash family."""
    for value in (*TEXTS, "x" * 500):
        for seed in (0, (1 << 53) + 1, LAST):
            for index in (0, 20, 21, 65535):
                if index < 65535 or seed == LAST:
                    word = hash_words([canonical(value)], seed, index + 1)[0, index]
                    yield {"value": value, "seed": str(seed), "index": index, "word": f"{word:016x}"}


def symbols() -> Iterator[Record]:
    """Symbols of values, in some cohorts; for each alphabet those of one collection."""
    seen = set()
    for name, item in COLLECTIONS.items():
        alphabet = item.alphabet
        if alphabet in seen or item.num_cohorts * alphabet.num_symbols > 1 << 20:
            continue
        seen.add(alphabet)
        known = _values_of(name) or (*TEXTS, *alphabet.clear_values)
        values = [*known, *getattr(alphabet, "tags", ())]
        cohorts = sorted({0, item.num_cohorts // 2, item.num_cohorts - 1})
        for value in values[:3] + values[-3:] if len(values) > 20 else dict.fromkeys(values):
            for cohort in cohorts:
                found = alphabet.encode([value], np.array([cohort]), item.num_cohorts).reshape(-1)
                yield {"collection": name, "value": value, "cohort": cohort, "symbols": found.tolist()}


# ---------------------------------------------------------------------- words and payloads


def _beginnings(mechanism: Mechanism) -> list[list[int]]:
    """Words on both sides of each threshold; and others that make samplers draw again, or ignore a coin."""
    if isinstance(mechanism, TwoStage):
        d, (noise, own) = mechanism.num_symbols - 1, map(int, mechanism.exact_weights.values())
        ends = (own, (d - 1) * own, (d - 1) * own + noise, d * noise, LAST)
        return [[word] for end in ends for word in (end - 1, end)]
    if isinstance(mechanism, DeclaredChannel):
        ends = {sum(map(int, column[: y + 1])) for column in mechanism.exact_weights["weights"] for y in range(3)}
        return [[word] for end in sorted(ends) if 0 < end <= LAST for word in (end - 1, end)] + [[0], [LAST]]
    if isinstance(mechanism, UtilityOptimizedSquareWave):
        near, noise, w = mechanism.near_weight, mechanism.noise_weight, 2 * mechanism.reach + 1
        shares = mechanism.num_sensitive + 2 * mechanism.reach + (w - 1) * mechanism.num_others - w
        ends = (0, noise, shares * noise, shares * noise + near, LAST - LAST % near - near)
        clear = () if mechanism.protects_all else ((shares + w) * noise,)
        return [[word] for end in (*ends, *clear) for word in (end - 1, end) if word >= 0] + [[LAST]]
    if isinstance(mechanism, NestedLevels):
        keeps = [int(level["keep_weight"]) for level in mechanism.exact_weights["members"]]
        return [[keep + step] for keep in keeps for step in (-1, 0)] + [[0] * 99, [LAST]]
    parts = mechanism.parts if isinstance(mechanism, WithinBlocks) else [mechanism]
    found = [words for part in parts if part.num_sensitive for words in _of_coins(part)]
    return [words for place, words in enumerate(found) if words not in found[:place]]


def _of_coins(mechanism: Mechanism) -> list[list[int]]:
    """The same of a mechanism whose first coin is a word below ``keep_weight``."""
    keep = int(mechanism.client_sampler["keep_weight"])
    h, v = mechanism.num_hashes, mechanism.num_sensitive
    if h > 1:
        return [[0] * h, [LAST] * h, [keep - 1, keep] * (h // 2), [keep, keep - 1] * (h // 2)]
    sizes = [int(weight) for name, weight in mechanism.client_sampler.items() if name.startswith("larger")]
    if sizes:
        return [[coin, word] for coin in (keep - 1, keep) for size in sizes for word in (size - 1, size)]
    more = [[keep - 1, *[0] * v], [LAST, *[7] * v]] if mechanism.takes("subset_size") else []
    return [[keep - 1], [keep], [LAST], *more]


PAYLOADS = [name for name in COLLECTIONS if name.startswith(("closed-sensitive", "hashed-twice")) or name in SPECS]
PAYLOADS += [f"closed-{mechanism}" for mechanism in MECHANISM_CASES if mechanism not in ANY_VALUES]


def payloads() -> Iterator[Record]:
    """One payload for each set of words and symbols; of equal ones, as in blocks of different sizes, the first."""
    yield from {json.dumps(record): record for record in _payloads()}.values()


def _payloads() -> Iterator[Record]:
    for name in PAYLOADS:
        mechanism = COLLECTIONS[name].mechanism
        last, h = mechanism.num_symbols - 1, mechanism.num_hashes
        chosen = sorted({0, mechanism.num_sensitive - 1, min(mechanism.num_sensitive, last), last})
        sets = [[symbol] for symbol in chosen] if h == 1 else [[0, *[last] * (h - 1)], list(range(h)), [last] * h]
        if mechanism.payload_size > 4 or mechanism.num_symbols > 1000:
            sets = sets[-1:]
        for place, held in enumerate(sets):
            for number, beginning in enumerate(_beginnings(mechanism)):
                source = Words(beginning, name, place, number)
                payload = mechanism.perturb(np.array([held if h > 1 else held[0]]), source)
                yield {"collection": name, "symbols": held, "words": source.drawn, "payload": payload.tobytes().hex()}


# ---------------------------------------------------------------------- memos

_BUCKETS = {"id": "hashed", "num_buckets": 5, "seed": 3, "non_sensitive": ["b", "c"]}

MEMOS = {
    spec["id"]: spec
    for spec in (
        *(
            _spec(f"memo-{mechanism}", _ILLNESSES, {"id": mechanism, "epsilon_inf": 2.0})
            for mechanism in ANY_VALUES
            if MECHANISMS[mechanism].takes("epsilon_inf")
        ),
        _spec("memo-cohorts", _BUCKETS, {"id": "urr", "epsilon": 0.5, "epsilon_inf": 4}, 16),
        _spec("memo-marginal", _BUCKETS, {"id": "urap", "epsilon_inf": 3, "inversion": "marginal", "theta": 0.5}, 4),
        _spec("memo-two-sizes", numbered(9, 6), {"id": "uss", "subset_size": 1, "larger_share": 0.3, "epsilon_inf": 3}),
    )
}
"""Collections whose clients keep memos. They are not among ``COLLECTIONS``: a client may refuse them."""

_SECRETS = (bytes(range(32)), bytes([255]) * 32)


def memos() -> Iterator[Record]:
    """What a client derives from its secret, for each value; and reports of a memo, on both sides of the coin."""
    for name, spec in MEMOS.items():
        item = Collection.from_json(spec)
        values = spec["alphabet"].get("values", ["a", "b", "x"])
        derived = [
            _derived(item, value, _SECRETS[place % 2], (1, 7, 30)[place % 3]) for place, value in enumerate(values)
        ]
        mechanism: Any = item.mechanism
        memo = np.frombuffer(bytes.fromhex(derived[0]["memo"]), dtype=np.uint8)[np.newaxis]
        reports = []
        for first in (mechanism.repeat_weight - 1, mechanism.repeat_weight, LAST):
            source = Words([first], name, "memo")
            payload = mechanism.draw_reports(memo, source)
            reports.append({"memo": derived[0]["memo"], "words": source.drawn, "payload": payload.tobytes().hex()})
        yield {"collection": spec, "client": client_form(item), "derived": derived, "reports": reports}


def _derived(item: Collection, value: str, secret: bytes, every: int) -> dict[str, Any]:
    """Cohort, symbol and memo of a value, and the turn of the device, all of which follow from its secret."""
    cohort = KeyedSource(secret, item.fingerprint, COHORT).integer(item.num_cohorts)
    symbol = int(item.alphabet.encode([value], np.array([cohort]), item.num_cohorts)[0])
    mechanism: Any = item.mechanism
    memo = mechanism.draw_memos(np.array([symbol]), KeyedSource(secret, item.fingerprint, MEMO, symbol))
    return {
        "secret": secret.hex(),
        "value": value,
        "cohort": cohort,
        "symbol": symbol,
        "memo": memo.tobytes().hex(),
        "report_every": every,
        "turn": KeyedSource(secret, item.fingerprint, TURN, every).integer(every),
    }


# ---------------------------------------------------------------------- budgets

_COSTS = ((1, 1), (1, 3), (2, 1), (2, 2), (5, 2), (5, 7), (12, 1), (12, 5), (365, 2), (365, 100), (3650, 16))
"""Numbers of reports and of different symbols."""


def costs() -> Iterator[Record]:
    """What n reports cost of a person who has had at most D symbols."""
    specs = MEMOS | {"order-krr": SPECS["order-krr"], "closed-channel": COLLECTIONS["closed-channel"].to_json()}
    for name, spec in specs.items():
        mechanism = Collection.from_json(spec).mechanism
        found = [[number, symbols, cost_of_reports(mechanism, number, symbols)] for number, symbols in _COSTS]
        yield {"collection": name, "costs": found}


class Memory:
    """A storage that is lost with the program."""

    text: str | None = None

    def update(self, change: Callable[[str | None], tuple[str, Any]]) -> Any:
        self.text, result = change(self.text)
        return result


_BUDGETS: dict[str, dict[str, Any]] = {
    "a-period": {"collections": ["memo-krr"], "epsilon": 3.5},
    "a-lifetime": {"collections": ["memo-krr"], "epsilon": 100.0, "lifetime": 6.5},
    "few-values": {"collections": ["memo-krr"], "epsilon": 100.0, "lifetime": 3.9, "distinct_values": 2},
    "both": {"collections": ["memo-urr"], "epsilon": 3.5, "lifetime": 8.9},
    "long-reports": {"collections": ["memo-rappor"], "epsilon": 2.5, "lifetime": 5.5},
    "fresh": {"collections": ["order-krr"], "epsilon": 3.0, "lifetime": 7.0},
    "shared": {"collections": ["memo-krr", "order-krr"], "epsilon": 4.5, "lifetime": 9.5},
}
_WINDOW = DAY // 8
_ASKED = 24  # windows: three days


def budgets() -> Iterator[Record]:
    """Which windows are answered: the same ones whatever the values are."""
    values = _ILLNESSES["values"]
    histories = [
        ["flu"] * _ASKED,
        [value for _, value in zip(range(_ASKED), itertools.cycle(values))],
        [values[place // 6] for place in range(_ASKED)],
    ]
    for name, budget in _BUDGETS.items():
        asked = [[budget["collections"][i % len(budget["collections"])], i * _WINDOW] for i in range(_ASKED)]
        [answered] = {tuple(_answered(budget, asked, history)) for history in histories}
        limits = {"lifetime": None, "distinct_values": None, "period_ms": DAY, "window_ms": _WINDOW} | budget
        yield {"name": name} | limits | {"asked": asked, "histories": histories, "answered": list(answered)}


def _answered(budget: dict[str, Any], asked: list[list[Any]], history: list[str]) -> Iterator[bool]:
    limit = Budget(epsilon=budget["epsilon"], lifetime=budget.get("lifetime"))
    options: dict[str, Any] = {"window_ms": _WINDOW, "distinct_values": budget.get("distinct_values")}
    storage = Memory()
    specs = {name: MEMOS.get(name) or SPECS[name] for name in budget["collections"]}
    clients = {name: Client(Collection.from_json(spec), storage, limit, **options) for name, spec in specs.items()}
    for (name, event_time), value in zip(asked, history):
        try:
            clients[name].report(value, event_time)
            yield True
        except BudgetSpentError:
            yield False


# ---------------------------------------------------------------------- forms that are pinned, and those to be refused


def form_fingerprints() -> Iterator[Record]:
    """Of all right forms."""
    forms = {name: client_form(item) for name, item in COLLECTIONS.items()}
    forms |= {name: client_form(Collection.from_json(spec)) for name, spec in (MEMOS | WINDOWS | GROUPED).items()}
    for name, form in forms.items():
        yield {"collection": name, "form_fingerprint": form_fingerprint(form)}


def refusals() -> Iterator[Record]:
    """Forms that somebody has changed, and the form_fingerprint of the right ones."""
    yield from tampered_forms(
        {name: Collection.from_json(spec) for name, spec in (SPECS | MEMOS | WINDOWS | GROUPED).items()}
    )


# ---------------------------------------------------------------------- windows of clients

_NAMED = {
    "hours": {"client_window": "6h"},
    "days": {"client_window": "1d"},
    "weeks": {"client_window": "1w"},
    "days-berlin": {"client_window": "1d", "client_timezone": "Europe/Berlin"},
    "weeks-new-york": {"client_window": "1w", "client_timezone": "America/New_York"},
    "days-kathmandu": {"client_window": "1d", "client_timezone": "Asia/Kathmandu"},
}

WINDOWS = {
    spec["id"]: spec
    for spec in (
        *(_spec(f"asked-{name}", _ILLNESSES, {"id": "krr"}) | fields for name, fields in _NAMED.items()),
        _spec("asked-memo", _ILLNESSES, {"id": "krr", "epsilon_inf": 2.0}) | _NAMED["days-berlin"],
    )
}
"""Collections that name the window of their clients."""


def windows() -> Iterator[Record]:
    """When the window of an event begins and ends: on both sides of midnights, and around changes of clocks."""
    changes = map(moment_of, (f"2024-{hour}:00:00Z" for hour in ("03-31T01", "10-27T01", "03-10T07", "11-03T06")))
    for spec in WINDOWS.values():
        item = Collection.from_json(spec)
        assert item.asked is not None
        times = [-1, 0, NOON, *(change + hours * 3_600_000 for change in changes for hours in range(-3, 3))]
        times += [edge + step for edge in map(item.asked.end_of, times[2:]) for step in (-1, 0)]
        told = [
            {"event_time": time, "start": item.asked.start_of(time), "end": item.asked.end_of(time)}
            for time in dict.fromkeys(times)
        ]
        yield {"collection": spec, "client": client_form(item), "times": told}


# ---------------------------------------------------------------------- dimensions

_COUNTRY, _ARM = {"name": "country", "values": ["DE", "FR"]}, {"name": "arm", "values": ["control", "new"]}
_LANGUAGE = {"name": "language", "values": [DECOMPOSED, "\u65e5\u672c\u8a9e", 'a"b\\c', "\N{FOX FACE}"]}
_GROUPED: tuple[tuple[list[dict[str, Any]], dict[str, Any]], ...] = (
    ([_COUNTRY, _ARM], _spec("groups-krr", _ILLNESSES, {"id": "krr"})),
    ([_ARM, _COUNTRY], _spec("groups-order", _ILLNESSES, {"id": "krr"})),
    ([_LANGUAGE], _spec("groups-texts", _BUCKETS, {"id": "urap"}, 16)),
    ([_COUNTRY, _LANGUAGE, _ARM], _spec("groups-largest", _BUCKETS, {"id": "krr"}, 1456)),
    ([_ARM], _spec("groups-memo", _ILLNESSES, {"id": "krr", "epsilon_inf": 2.0}, 3)),
    ([_COUNTRY | {"set_by": "gateway"}, _ARM], _spec("groups-gateway", _ILLNESSES, {"id": "krr"})),
    ([_ARM, _COUNTRY | {"set_by": "attribute"}], _spec("groups-attribute", _BUCKETS, {"id": "krr"}, 5)),
)
GROUPED = {spec["id"]: spec | {"dimensions": listed} for listed, spec in _GROUPED}
"""Collections with dimensions. They are not among ``COLLECTIONS``: clients came to know them later."""

_UNLISTED = ("other", "", " DE", "de", "\u00df")


def dimensions() -> Iterator[Record]:
    """The group that a report states: each listed text, texts that are not listed, and each as it may be typed."""
    for name, spec in GROUPED.items():
        item = Collection.from_json(spec)
        known = spec["alphabet"].get("values", TEXTS)
        asked = [one for one in spec["dimensions"] if "set_by" not in one]
        digits = itertools.product(*(range(len(one["values"]) + 1) for one in asked))
        told = []
        for number, group in enumerate(digits if "epsilon_inf" not in spec["mechanism"] else ()):
            typed = [
                [*map(canonical if number % 2 else str, one["values"]), _UNLISTED[number % len(_UNLISTED)]][digit]
                for one, digit in zip(asked, group)
            ]
            texts = dict(zip((one["name"] for one in asked), typed))
            source = Words((), name, "group", number)
            value, time = known[number % len(known)], TIMES[number % len(TIMES)]
            batch = item.perturb([value], source, [time], {key: [text] for key, text in texts.items()})
            told.append({
                "value": value, "event_time": time, "dimensions": texts, "words": source.drawn,
                "cohort": int(batch.cohorts[0]), "message": wire.encode_reports(batch)[0].hex(),
            })  # fmt: skip
        yield {"collection": spec, "client": client_form(item), "reports": told}


# ---------------------------------------------------------------------- reports and bytes

TIMES = (NOON, 0, -1, MIN_EVENT_TIME, MAX_EVENT_TIME - 1)


def _report(name: str, number: int) -> tuple[dict[str, Any], ReportBatch]:
    item = COLLECTIONS[name]
    known = _values_of(name) or TEXTS
    value, time = known[number % len(known)], TIMES[number % len(TIMES)]
    source = Words((), name, "report", number)
    batch = item.perturb([value], source, [time])
    record = {
        "collection": name,
        "value": value,
        "event_time": time,
        "words": source.drawn,
        "cohort": int(batch.cohorts[0]),
        "payload": batch.payloads.tobytes().hex(),
        "report_id": batch.report_ids.tobytes().hex(),
        "message": wire.encode_reports(batch)[0].hex(),
    }
    return record, batch


def reports() -> Iterator[Record]:
    """A report from beginning to end: all words that a client draws, and the message."""
    for number, name in enumerate(COLLECTIONS):
        yield _report(name, number)[0]


def batches() -> Iterator[Record]:
    """Messages of single reports, and the message that packs them."""
    for name in ("closed-krr", "order-urap", "seed-largest", "clear-bytes-3"):
        made = [_report(name, number) for number in range(len(TIMES))]
        packed = wire.encode_batch(ReportBatch.concatenate([batch for _, batch in made]))
        yield {"collection": name, "messages": [record["message"] for record, _ in made], "packed": packed.hex()}


FILES: dict[str, Callable[[], Iterator[Record]]] = {
    f"{propose.__name__}.json": propose
    for propose in (
        collections,
        numbers,
        weights,
        hashes,
        symbols,
        payloads,
        reports,
        batches,
        memos,
        costs,
        budgets,
        form_fingerprints,
        refusals,
        windows,
        dimensions,
    )
}
"""File -> what makes its records."""


def proposed(name: str) -> list[Record]:
    """The records that a file should have."""
    return list(appended(name, FILES[name]()))
