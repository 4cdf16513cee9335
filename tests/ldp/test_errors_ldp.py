"""Every sentence that the library says when it refuses something: class.field, what is allowed, what came."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import COLLECTIONS, VALUES
from tests.support.refusals import ldp as refusals_of_ldp
from tests.support.refusals.jobs.sums import REFUSED as REFUSED_SUMS
from tests.support.refusals.stated import refusals
from tests.support.refusals.tables import Refusal, rows_of, with_kinds
from uldp_transforms import ldp
from uldp_transforms.ldp import (
    Budget,
    BudgetSpentError,
    Client,
    CohortCounts,
    Collection,
    FileStorage,
    ReportBatch,
    UldpError,
)
from uldp_transforms.ldp.alphabets import ALPHABETS, Closed, Hashed, Ordered, PersonalTags, Prefixes, Tagged
from uldp_transforms.ldp.checks import parse_json
from uldp_transforms.ldp.discovery import discover
from uldp_transforms.ldp.errors import (
    IllConditionedError,
    InsufficientCohortsError,
    NoReportsError,
)
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.estimators.number_estimates import check_limits, check_quantiles, estimate_numbers
from uldp_transforms.ldp.mechanisms import (
    MECHANISMS,
    AttributeGRR,
    DeclaredChannel,
    KaryRR,
    Rappor,
    TwoStage,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from uldp_transforms.ldp.registry import EntryPoints, Table
from uldp_transforms.ldp.sampling import WORD, SystemSource

SOURCES = sorted(Path(ldp.__file__).parent.rglob("*.py"))


def load_a_package_without_modules(folder: Path) -> None:
    """Of a distribution whose metadata names one."""
    info = folder / "tiny-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[uldp_transforms.tests]\nlost = not_there:Lost\n", encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        EntryPoints("mechanism", "uldp_transforms.tests", print).load()
    finally:
        sys.path.remove(str(folder))


TABLE = Table("source", [types.SimpleNamespace(__name__="One", options=("--a",))], options=lambda one: one.options)
CLOSED, OPEN, BITS = (COLLECTIONS[name] for name in ("closed-krr", "hashed-krr", "closed-rappor"))
BATCH = CLOSED.perturb(["ant", "bee"])
COUNTS = CLOSED.count(BATCH)
OPEN_COUNTS = OPEN.count(OPEN.perturb(["ant", "bee"]))
SPEC = CLOSED.to_json()
MANY_TEXTS = tuple(map(str, range(100_000)))
TWO_VALUES = Collection(
    id="c",
    version=1,
    alphabet=Closed(values=("a", "b")),
    mechanism=KaryRR(num_symbols=2, num_sensitive=2, epsilon=1),
)
NUMBERS = Ordered(edges=(0, 1, 2), others=("none",))
OF_NUMBERS = Collection.from_json(
    {"id": "c", "version": 1, "alphabet": NUMBERS.to_json(), "mechanism": {"id": "krr", "epsilon": 1}}
)
OF_LOGARITHMS = Collection.from_json(
    OF_NUMBERS.to_json() | {"alphabet": {"id": "ordered", "low": 1, "high": 9, "num_bins": 2, "scale": "log"}}
)
NO_COHORTS = np.zeros(3, dtype=int)
LONG = "x" * 70
SHORTENED = f"'{'x' * 56}..."
TWICE = Collection.from_json(
    BITS.to_json() | {"alphabet": {"id": "hashed", "num_buckets": 8, "num_hashes": 2}, "num_cohorts": 9}
)


WORDS = Collection(
    id="words",
    version=1,
    alphabet=Prefixes(num_buckets=4, tokens=("a",), lengths=(1, None)),
    mechanism=KaryRR(num_symbols=4, num_sensitive=4, epsilon=1.0),
    num_cohorts=4,
)
TOO_MANY_PREFIXES = dataclasses.replace(
    WORDS, alphabet=Prefixes(num_buckets=4, tokens=MANY_TEXTS[:5000], lengths=(2, None))
)
ONE_LEVEL = CohortCounts(np.array([1, 0, 1, 0]), np.array([[1, 0, 0, 0], [0] * 4] * 2))
"""Counts of cohorts of the first level alone."""


def spec(**fields: Any) -> Callable[[], Any]:
    return lambda: Collection.from_json(SPEC | fields)


def krr(**fields: Any) -> Callable[[], Any]:
    return lambda: KaryRR(**{"num_symbols": 3, "num_sensitive": 3, "epsilon": 1} | fields)


def closed(*values: Any, **fields: Any) -> Callable[[], Any]:
    return lambda: Closed(values=values, **fields)


def ordered(fields: dict[str, Any]) -> Callable[[], Any]:
    return lambda: Ordered(**({"low": 0, "high": 1} | fields))


def prefixes(**fields: Any) -> Callable[[], Any]:
    return lambda: Prefixes(**{"num_buckets": 4, "tokens": ("a",), "lengths": (1, None)} | fields)


def hashed(**fields: Any) -> Callable[[], Any]:
    return lambda: Hashed(num_buckets=4, **fields)


def tagged(**fields: Any) -> Callable[[], Any]:
    return lambda: Tagged(**{"values": ("a", "b"), "tags": ("t",)} | fields)


def agrr(num_symbols: int, *priors: Any) -> Callable[[], Any]:
    return lambda: AttributeGRR(num_symbols=num_symbols, num_sensitive=num_symbols, epsilon=1, priors=priors)


def tsp(num_symbols: int, rates: Any) -> Callable[[], Any]:
    return lambda: TwoStage(num_symbols=num_symbols, num_sensitive=num_symbols, epsilon=1, missing_rates=rates)


def channel(matrix: Any, num_symbols: int = 2, **fields: Any) -> Callable[[], Any]:
    return lambda: DeclaredChannel(num_symbols=num_symbols, num_sensitive=num_symbols, matrix=matrix, **fields)


def calling(function: Callable[..., Any], *args: Any, **fields: Any) -> Callable[[], Any]:
    return lambda: function(*args, **fields)


def batch(**columns: Any) -> ReportBatch:
    names = ("fingerprint", "cohorts", "payloads", "event_times", "report_ids")
    return ReportBatch(**{name: getattr(BATCH, name) for name in names} | columns)


def client_of(epsilon: float = 9.0, period_ms: int = 86_400_000, **fields: Any) -> Callable[[Path], Client]:
    """Opens a client whose storage is in the folder."""

    def make(folder: Path) -> Client:
        budget = Budget(epsilon=epsilon, period_ms=period_ms)
        return Client(CLOSED, FileStorage(folder / "state.json"), budget, **fields)

    return make


ASKED_DAILY = dataclasses.replace(CLOSED, client_window="1d")
KEYS = ("client_state", "secret", "period_ms", "period", "spent", "ever", "answers")
STORED = json.dumps(dict.fromkeys(KEYS) | {"client_state": 3})


def damaged_answer(opened: Callable[[Path], Client], folder: Path) -> Client:
    """A client whose answer to the first window has a cohort that is not there."""
    client = opened(folder)
    client.report("ant", 0)
    state = json.loads((folder / "state.json").read_text())
    state["answers"][CLOSED.fingerprint.hex()]["0"][1] = 65535
    (folder / "state.json").write_text(json.dumps(state))
    return client


def client_in(stored: str) -> Callable[[Path], Client]:
    """Opens a client whose storage has this text."""

    def make(folder: Path) -> Client:
        (folder / "state.json").write_text(stored)
        return client_of()(folder)

    return make


def file_of(content: bytes) -> Callable[[Path], Any]:
    """Reads a collection file with this content; the table says FILE for its path."""

    def read(folder: Path) -> Collection:
        (folder / "c.json").write_bytes(content)
        return Collection.from_json(folder / "c.json")

    return read


def estimate_two_values_that_share_all_buckets() -> None:
    table = OPEN.alphabet.symbol_table(MANY, OPEN.num_cohorts)[:2]
    first = next(i for i in range(1, len(MANY)) if (table[:, i] == table[:, 0]).all())
    cells = np.zeros((OPEN.num_cohorts, OPEN.num_cells), dtype=np.int64)
    cells[:2] = 10
    OPEN.estimate(CohortCounts(cells.sum(axis=1), cells), candidates=(MANY[0], MANY[first]))


def most_likely_of_a_long_list() -> None:
    item = Collection.from_json(OPEN.to_json() | {"alphabet": {"id": "hashed", "num_buckets": 64}, "num_cohorts": 16})
    item.estimate(item.count(item.perturb(["ant"] * 200)), "em", [str(i) for i in range(8193)])


LONG_LIST = Collection.from_json(
    {
        "id": "long",
        "version": 1,
        "alphabet": {
            "id": "hashed",
            "num_buckets": 4,
            "num_clear_buckets": 64,
            "non_sensitive": [str(i) for i in range(8193)],
        },
        "mechanism": {"id": "urr", "epsilon": 1.0},
        "num_cohorts": 4,
    }
)
MANY = tuple(f"value {i}" for i in range(200))
INT, FLOAT = np.zeros(2, dtype=np.int64), np.zeros(2)
ID, TIME = "collection 'animals'", "(milliseconds since 1970 UTC)"

URR = UtilityOptimizedRR(num_symbols=3, num_sensitive=2, epsilon=1)
URAP = UtilityOptimizedRappor(num_symbols=3, num_sensitive=2, epsilon=1)
TSP = TwoStage(num_symbols=3, num_sensitive=3, epsilon=1, missing_rates=(0.4, 0.1))
BLOOM = Rappor(num_symbols=3, num_sensitive=3, num_hashes=2, epsilon=1)
TAGS = Tagged(values=("a", "b"), tags=("t",))
THREE = np.array([0.5, 0.3, 0.2])
BEHIND = np.array([[0.0], [0.5], [0.5]])
NO_EPSILON, NO_REPORTS = "must be a number in (0, 16], got 17", f"must be an integer in [1, {1 << 62}], got 0"

# Parts that several sentences share.
REPEATED = "must not repeat an entry (in Unicode NFC), got"
NO_TIME = "must be an integer in [1, 9007199254740992], got"
NO_NUMBER = "a value must be a number such as 12.5, or one of the 1 texts of Ordered.others, got"
KEYS_OF_COLLECTION = (
    "Collection takes the keys id, version, alphabet, mechanism, num_cohorts, client_window, client_timezone, "
    "question, dimensions, noun, got"
)
OPEN_LIST = "candidates of an open alphabet, including its non-sensitive values, must be at most"
OWN_SYMBOL = "must give every value its own symbol, in the order of the values, and must have only sensitive values for"
PAYLOADS = "needs payloads of 1 bytes and cohorts below 1, got payloads of"

# A call, and its whole sentence; or its beginning, up to a space, where the rest is not ours to choose.
REFUSED: list[Refusal] = [
    # collection
    (
        spec(id="x" * 65),
        f"Collection.id must be 1 to 64 of the characters a-z, 0-9, '.', '_' and '-', got '{'x' * 56}...",
    ),
    (
        spec(alphabet={"id": "permuted", "values": list(VALUES), "num_buckets": 3}, num_cohorts=2),
        "Collection.num_cohorts must be at least 3 to tell 6 values apart with 3 buckets, got 2",
    ),
    (
        spec(alphabet={"id": "permuted", "values": list(VALUES), "num_buckets": 2}, num_cohorts=5),
        "Collection.alphabet.seed must name permutations that tell 6 values apart in 5 cohorts, got 0, whose buckets "
        "leave some shares open; use another seed, or more cohorts",
    ),
    (lambda: Collection.from_json({}), "Collection needs the key 'id', got no keys"),
    (
        lambda: Collection.from_json({"id": "a", "version": 1}),
        "Collection needs the key 'alphabet', got 'id', 'version'",
    ),
    (
        spec(epsilon=1),
        f"{KEYS_OF_COLLECTION} 'epsilon'",
    ),
    (file_of(b"[1]"), "Collection must be a JSON object, got [1]"),
    (
        lambda: Collection(id="a", version=1, alphabet=OPEN.alphabet, mechanism=CLOSED.mechanism, num_cohorts=2),
        "Collection.mechanism must match the alphabet's 4 symbols, 4 of them sensitive, got 6 and 6",
    ),
    (
        lambda: Collection(
            id="a",
            version=1,
            alphabet=Hashed(num_buckets=6, num_hashes=2),
            mechanism=COLLECTIONS["closed-rappor"].mechanism,
            num_cohorts=2,
        ),
        "Collection.mechanism must support the alphabet's 2 hash functions, got a mechanism for 1",
    ),
    (
        spec(
            alphabet={"id": "closed", "values": ["a", "b"], "sensitive": ["a"]},
            mechanism={"id": "agrr", "epsilon": 1, "priors": [[1, 0], [0, 1]]},
        ),
        f"Collection.alphabet {OWN_SYMBOL} AttributeGRR, "
        "got Closed with 2 known values, 2 symbols and 1 sensitive ones",
    ),
    (
        spec(
            alphabet={"id": "hashed", "num_buckets": 3},
            mechanism={"id": "tsp", "epsilon": 1, "missing_rates": [0.5, 0.1]},
            num_cohorts=2,
        ),
        f"Collection.alphabet {OWN_SYMBOL} TwoStage, got Hashed with 0 known values, 3 symbols and 3 sensitive ones",
    ),
    # files
    (file_of(b"\xff"), "FILE must be a UTF-8 text file, got other bytes"),
    (file_of(b"{\n'"), "FILE must be JSON, got an error in line 2: "),
    (file_of(b'{"id": "a", "b": 1, "id": "c"}'), "FILE must not repeat a key, got id more than once"),
    (
        file_of(json.dumps(dict.fromkeys("abcdef", 0))[:-1].encode() + b', "b": 1, "x": 1, "a": 2, "b": 3}'),
        "FILE must not repeat a key, got a, b more than once",
    ),
    (
        lambda: parse_json("{" + ", ".join(f'"{i % 100_000}": 0' for i in range(200_000)) + "}", "it"),
        "it must not repeat a key, got 0, 1, 2, 3, 4, ... more than once",
    ),
    (
        lambda: parse_json('{"' + "x" * 70 + '": 0, "' + "x" * 70 + '": 0}', "it"),
        f"it must not repeat a key, got {'x' * 57}... more than once",
    ),
    (
        lambda: Collection.from_json({str(i): 0 for i in range(100_000)}),
        "Collection needs the key 'id', got '0', '1', '2', '3', '4', ...",
    ),
    (
        lambda: Collection.from_json(SPEC | {"x" * 70: 0}),
        f"{KEYS_OF_COLLECTION} '{'x' * 56}...",
    ),
    # as many as there may be, or a text of any length
    (closed(*MANY_TEXTS, MANY_TEXTS[-1]), f"Closed.values {REPEATED} '99999' twice"),
    (
        closed(*MANY_TEXTS, sensitive=(*MANY_TEXTS, "x")),
        "Closed.sensitive must contain only entries of Closed.values, got 'x'",
    ),
    (closed("a", LONG, LONG), f"Closed.values {REPEATED} {SHORTENED} twice"),
    (closed("a", "\ud800"), "Closed.values must be Unicode text, got '\\ud800'"),
    (closed("a", "\ud800" + LONG), "Closed.values must be Unicode text, got '\\ud800" + "x" * 50 + "..."),
    (
        tagged(tags=(LONG,), background={LONG: {"a": 2}}),
        f"Tagged.background must give every tag shares in [0, 1] that sum to 1, got other numbers for {SHORTENED}",
    ),
    (
        file_of(b"1" * 5000),
        "FILE must be JSON with numbers and nesting of moderate size, got too many digits or levels",
    ),
    (
        file_of(b"[" * 100_000),
        "FILE must be JSON with numbers and nesting of moderate size, got too many digits or levels",
    ),
    (lambda: parse_json("[-Infinity]", "it"), "it must hold finite numbers, got -Infinity"),
    # registries
    (spec(alphabet={"id": "none"}), f"alphabet.id must be one of {', '.join(sorted(ALPHABETS))}, got 'none'"),
    (spec(mechanism={"epsilon": 1}), f"mechanism.id must be one of {', '.join(sorted(MECHANISMS))}, got None"),
    (
        lambda: CLOSED.estimate(COUNTS, "best"),
        f"estimator.id must be one of {', '.join(sorted(ESTIMATORS))}, got 'best'",
    ),
    (
        lambda: ALPHABETS.register(type("Other", (), {"id": "hashed"})),
        "alphabet.id must be new, got 'hashed', used by Hashed",
    ),
    (
        lambda: TABLE.register(types.SimpleNamespace(__name__="Two", options=("--b", "--a"))),
        "source.options must be new, got --a, used by One",
    ),
    (
        load_a_package_without_modules,
        "mechanism 'lost' of the package tiny cannot be added: No module named 'not_there'",
    ),
    (
        spec(mechanism={"id": "urap", "epsilon": 1, "num_symbols": 6}),
        "mechanism takes the keys epsilon, epsilon_inf, theta, inversion, got 'num_symbols'",
    ),
    # alphabets
    (prefixes(tokens=MANY_TEXTS), "Prefixes.tokens must be at most 65536 texts, none of them empty, got 100000"),
    (
        lambda: Collection.from_json(WORDS.to_json() | {"num_cohorts": 3}),
        "Collection.num_cohorts must be at least 4 for 2 levels of prefixes (one hash function cannot tell colliding "
        "values apart), got 3",
    ),
    (
        lambda: discover(OPEN, OPEN_COUNTS),
        "collection 'animals' must have the alphabet prefixes to discover unlisted values, got 'hashed'",
    ),
    (
        lambda: discover(TOO_MANY_PREFIXES, CohortCounts.empty(4, 4)),
        "collection 'words' must have at most 16777216 prefixes of 2 token(s) for a search, got 5000 tokens",
    ),
    (
        tagged(values=[str(i) for i in range(4095)], tags=("t", "u")),
        "Tagged.values and Tagged.tags must have at most 4096 entries together, got 4097",
    ),
    (
        lambda: PersonalTags(Tagged(values=("a", "b"), tags=("t", "u")), {"w": ["a"]}),
        "PersonalTags must use the tags t, u, got another text",
    ),
    (
        lambda: PersonalTags(Tagged(values=("a", "b"), tags=("t", "u")), {"t": "a"}),
        "PersonalTags must have a list of values for 't', got a single text",
    ),
    (
        lambda: PersonalTags(Tagged(values=("a", "b"), tags=("t", "u")), {"t": ["secret"]}),
        "PersonalTags must hide values of the alphabet, got another text for 't'",
    ),
    (
        lambda: PersonalTags(Tagged(values=("a", "b"), tags=("t", "u")), {"t": ["a"], "u": ["a"]}),
        "PersonalTags must hide every value with only one tag, got a value that 'u' and another tag hide",
    ),
    (
        lambda: Collection.from_json(
            SPEC | {"alphabet": {"id": "tagged", "values": ["a", "b"], "tags": ["t"]}}
        ).perturb(["a", "yak"]),
        "Tagged.values and tags lists 3 values, got 1 value(s) outside this list",
    ),
    (lambda: CLOSED.perturb(["ant", "yak", "gnu"]), "Closed.values lists 6 values, got 2 value(s) outside this list"),
    (
        lambda: COLLECTIONS["permuted-krr"].perturb(["yak"]),
        "Permuted.values lists 6 values, got 1 value(s) outside this list",
    ),
    (lambda: CLOSED.perturb("ant"), "values must be a list of texts, got a single str"),
    (lambda: CLOSED.perturb({"ant"}), "values must be a list of texts, one per report, got set"),
    (lambda: CLOSED.perturb({"ant": 1}), "values must be a list of texts, one per report, got dict"),
    (lambda: CLOSED.perturb(iter(["ant"])), "values must be a list of texts, one per report, got list_iterator"),
    (lambda: CLOSED.perturb(None), "values must be a list of texts, one per report, got NoneType"),
    (
        lambda: CLOSED.perturb(np.array([["ant"], ["bee"]])),
        "values must be a list of texts, one per report, got ndarray",
    ),
    (lambda: OPEN.estimate(OPEN_COUNTS, candidates="ant"), "candidates must be a list of texts, got 'ant'"),
    (
        lambda: OPEN.perturb(["\ud800"]),
        "values must be Unicode text, got a text with a surrogate, which UTF-8 cannot encode",
    ),
    # the client
    (client_of(window_ms=7), "Client.window_ms must divide Budget.period_ms, 86400000, got 7"),
    (client_of(window_ms=0), f"Client.window_ms {NO_TIME} 0"),
    (client_of(time_unit_ms=0), f"Client.time_unit_ms {NO_TIME} 0"),
    *(
        (client_of(time_unit_ms=unit), f"Client.time_unit_ms must divide the client's window of 86400000, got {unit}")
        for unit in (7_000_000, 2 * 86_400_000)  # not whole ones; longer than the window
    ),
    (
        lambda folder: Client(ASKED_DAILY, FileStorage(folder / "s.json"), Budget(epsilon=1), window_ms=86_400_000),
        "Client.window_ms must be absent if the collection has client_window, which is 1d, got 86400000",
    ),
    (client_of(report_every=0), "Client.report_every must be an integer in [1, 2147483648], got 0"),
    (client_of(secret=b"short"), "Client.secret must be 32 bytes (the value is not shown)"),
    (
        lambda folder: [client_of(secret=bytes([i]) * 32)(folder) for i in (1, 2)],
        "Client.secret must be the secret in the storage, got a different one",
    ),
    (
        lambda folder: [client_of(period_ms=1000 * i, window_ms=1000)(folder) for i in (1, 2)],
        "Budget.period_ms must be the same as when the storage was created, 1000, got 2000",
    ),
    (
        lambda folder: [client_of()(folder).report("ant", days * 86_400_000) for days in (2, 1)],
        "Client.report: event_time must not be in a period before that of an earlier call, got one 1 period(s) earlier",
    ),
    (
        lambda folder: client_of()(folder).report("ant", 1.5),
        "Client.report: event_time must be an integer in [-9007199254740992, 9007199254740992], got 1.5",
    ),
    *(
        (client_in(stored), f"the client's storage{sentence}")
        for stored, sentence in (
            ("", " must be the JSON text of a client (the value is not shown)"),
            ("[]", f" must be an object with the keys {', '.join(KEYS)} (the value is not shown)"),
            (STORED, ": client_state must be a version from 1 to 2 (the value is not shown)"),
        )
    ),
    (
        lambda folder: damaged_answer(client_of(), folder).report("ant", 0),
        "the client's storage: answers must be reports of the collection (the value is not shown)",
    ),
    (client_of(distinct_values=0), "Client.distinct_values must be an integer in [1, 2147483648], got 0"),
    # mechanisms
    (
        lambda: NUMBERS.encode([1.5, True], NO_COHORTS, 1),
        f"{NO_NUMBER} true or false",
    ),
    (
        lambda: NUMBERS.encode([float("nan"), 1.5, float("inf")], NO_COHORTS, 1),
        f"{NO_NUMBER} 2 not finite, the first in row 0",
    ),
    (
        lambda: NUMBERS.encode(["secret", "1", "none"], NO_COHORTS, 1),
        f"{NO_NUMBER} 1 other text(s)",
    ),
    (
        lambda: NUMBERS.encode(["none", None], NO_COHORTS, 1),
        f"{NO_NUMBER} another type or a number that is not finite in row 1",
    ),
    (
        spec(alphabet={"id": "hashed", "num_buckets": 3}, mechanism={"id": "usw", "epsilon": 1}, num_cohorts=2),
        "Collection.alphabet must give every value its own symbol for UtilityOptimizedSquareWave, got Hashed with 0 "
        "known values and 3 symbols",
    ),
    (
        lambda: Collection(
            id="c", version=1, alphabet=NUMBERS, mechanism=KaryRR(num_symbols=3, num_sensitive=3, epsilon=1)
        ),
        "Collection.mechanism must know of the alphabet's 1 symbols without a place in the order, got a mechanism for "
        "0",
    ),
    (lambda: estimate_numbers(CLOSED, COUNTS), "numbers need the alphabet ordered, got closed"),
    (
        lambda: check_limits([4], [NUMBERS, Ordered(edges=(0, 5, 6, 7))]),
        "limits must be numbers from 1.0 to 1.0 or from 5.0 to 6.0, between inner edges, got 4",
    ),
    (lambda: check_quantiles([0.5, 1]), "quantiles must be numbers in (0, 1), got 1"),
    (lambda: check_quantiles([0.5, 0.5]), "quantiles must be at most 64 different numbers, got 2, [0.5, 0.5]"),
    (
        lambda: channel((("1", "0"), ("0", "1")), clients="foreign")().perturb(
            np.zeros(1, dtype=np.int64), SystemSource()
        ),
        "DeclaredChannel.clients must be 'own' to draw reports, got 'foreign', whose reports are only decoded",
    ),
    *(
        (channel(matrix), f"DeclaredChannel.matrix must {rule}")
        for matrix, rule in (
            (None, "be a list of at least 2 rows, one an output, got None"),
            ([["1", "1"]], "be a list of at least 2 rows, one an output, got 1 row"),
            ([["1", "0"]] * (1 << 20), "have at most 1048576 entries, got 1048576 x 2"),
            ([["1", "0"], ["0"]], "have rows of 2 probabilities, got 1 entry in row 1"),
            ([["1", "0"], "01"], "have rows of 2 probabilities, got '01' in row 1"),
            (
                [["5/6", "1/6"], ["1/6", "1/2"]],
                "have columns that sum to exactly 1, got 2/3 in column 1",
            ),
            (
                [[WORD // 2, "1/2"], [WORD // 2 - 1, "1/2"]],
                "have columns that sum to exactly 1, got 1 - 5.42e-20 in column 0",
            ),
            (
                [["1", "1"], ["0", "0"]],
                "let a symbol send every output, got zeros alone in row 1",
            ),
            (
                [["1/2", "1/2"], ["1/2", "1/2"]],
                "have columns that tell the symbols apart, got columns that are combinations of others, or nearly so",
            ),
            *(
                (
                    [["1", entry], ["0", "1"]],
                    "have probabilities as texts such as '5/6' or '0.25', or as integers out of 2**64, got "
                    f"{entry!r} in row 0",
                )
                for entry in (0.5, True, None, "half", "-1/2", "1e-3", "1/0", "3/2", -1, WORD + 1)
            ),
        )
    ),
    (
        lambda: CLOSED.estimate(CLOSED.count(CLOSED.perturb(["ant", "bee"]))).anytime(0),
        "Estimate.anytime needs a scale above 0, got 0",
    ),
    (
        lambda: CLOSED.estimate(CLOSED.count(CLOSED.perturb(["ant", "bee"]))).figures(),
        "Estimate.figures needs an estimate of the alphabet ordered, with intervals for one look, got intervals of the "
        "kind 'fixed' for 6 values",
    ),
    (
        lambda: CLOSED.estimate(CLOSED.count(CLOSED.perturb(["ant", "bee"]))).with_liars(CLOSED, 1),
        "Estimate.with_liars must have a share in [0, 1), got 1",
    ),
    (
        lambda: CLOSED.estimate(CLOSED.count(CLOSED.perturb(["ant", "bee"]))).with_liars(OPEN, 0.1),
        f"Estimate.with_liars needs a list of all values, each with a symbol of its own, got collection {OPEN.id!r}",
    ),
    (lambda: CLOSED.perturb(["ant"], event_times=[1.5]), f"event_times must be 1 integers {TIME}, got float64 (1,)"),
    (lambda: CLOSED.perturb(["ant"], event_times=[1, 2]), f"event_times must be 1 integers {TIME}, got int64 (2,)"),
    (lambda: batch(cohorts=INT), "ReportBatch.cohorts must be uint16 (2,), got int64 (2,)"),
    (lambda: batch(event_times=INT[:1]), "ReportBatch.event_times must be int64 (2,), got int64 (1,)"),
    (lambda: ReportBatch.concatenate([]), "ReportBatch.concatenate needs batches of exactly one collection"),
    (
        lambda: ReportBatch.concatenate([batch(), dataclasses.replace(batch(), times=2)]),
        "ReportBatch.concatenate needs batches with the same ReportBatch.times",
    ),
    (
        lambda: CLOSED.count(batch(fingerprint=bytes(32))),
        f"{ID} version 1 has the fingerprint {CLOSED.fingerprint.hex()[:16]}..., got reports for 0000000000000000...",
    ),
    (
        lambda: CLOSED.count(batch(payloads=np.zeros((2, 3), dtype=np.uint8))),
        f"{ID} {PAYLOADS} 3 bytes and cohorts up to 0",
    ),
    (
        lambda: CLOSED.count(batch(cohorts=np.array([0, 9], dtype=np.uint16))),
        f"{ID} {PAYLOADS} 1 bytes and cohorts up to 9",
    ),
    (
        lambda: CLOSED.count(batch(payloads=np.array([[5], [6]], dtype=np.uint8))),
        f"{ID} counts only valid payloads, got 1 invalid payload(s)",
    ),
    # counts
    (
        lambda: CohortCounts(FLOAT, COUNTS.cells),
        "CohortCounts.num_reports must be an int64 array of 1 dimension(s), got float64 (2,)",
    ),
    (lambda: CohortCounts(INT, [[1]]), "CohortCounts.cells must be an int64 array of 2 dimension(s), got list"),
    (lambda: CohortCounts(INT, COUNTS.cells), "CohortCounts.cells must have one row per cohort (2), got 1"),
    (lambda: COUNTS + OPEN_COUNTS, "CohortCounts can be added only if their shapes are equal, got (1, 6) and (16, 4)"),
    (
        lambda: CohortCounts.empty(1, 6, 2) + CohortCounts.empty(1, 6, 3),
        "CohortCounts.patterns can be added only if their lengths are equal, got 2 and 3",
    ),
    (
        lambda: CohortCounts(INT, np.zeros((2, 1), np.int64), FLOAT),
        "CohortCounts.patterns must be an int64 array of 1 dimension(s), got float64 (2,)",
    ),
    # estimates
    (lambda: CLOSED.estimate(OPEN_COUNTS), f"{ID} needs counts of shape (1, 6), got (16, 4)"),
    (
        lambda: CLOSED.check_counts(CohortCounts(np.array([9]), np.full((1, 6), 10))),
        f"counts of {ID} must have no cell above the reports of its cohort, got a violation in cohort 0",
    ),
    (
        lambda: OPEN.estimate(OPEN_COUNTS, "ml", ["ant"]),
        f"estimator 'ml' does not support {ID}: every value needs its own symbol; the estimator em has no such limit",
    ),
    (
        lambda: OPEN.estimate_reports(OPEN.perturb(["ant"]), "ml", ["ant"]),
        f"estimator 'ml' does not support {ID}: every value needs its own symbol; the estimator em has no such limit",
    ),
    (
        lambda: BITS.estimate(BITS.count(BITS.perturb(["ant"])), "ml"),
        f"estimator 'ml' does not support {ID}: there is no closed form for rappor; use the estimator em",
    ),
    (
        lambda: BITS.estimate(BITS.count(BITS.perturb(["ant"])), "em"),
        f"estimator 'em' does not support {ID}: counts do not hold the likelihood of rappor; "
        "estimate_reports takes the reports",
    ),
    (
        lambda: TWICE.estimate_reports(TWICE.perturb(["ant"] * 99), "em", ["ant"]),
        f"estimator 'em' does not support {ID}: the likelihood of several hash functions per cohort is not implemented",
    ),
    (
        lambda: PersonalTags(Tagged(values=("a", "b"), tags=("t",)), {"t": ["a"]}).hide("ab"),
        "PersonalTags.hide needs a list of texts, got a single text",
    ),
    (lambda: OPEN.estimate(OPEN_COUNTS, candidates=[]), "candidates must have at least 1 entry, got 0"),
    (lambda: OPEN.estimate(OPEN_COUNTS, candidates=[7]), "candidates must be a list of texts, got (7,)"),
    (lambda: OPEN.estimate(OPEN_COUNTS, candidates=[["ant"]]), "candidates must be a list of texts, got (['ant'],)"),
    (
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=["ant", "ant"]),
        f"candidates {REPEATED} 'ant' twice",
    ),
    (
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=["ant", "bee "]),
        "candidates must not begin or end with white space, got such a value at position 1",
    ),
    (
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=["x" * 4097]),
        "candidates must be at most 4096 bytes of UTF-8 each, got 4097 at position 0",
    ),
    (lambda: OPEN.estimate(OPEN_COUNTS), f"{ID} has an open alphabet and needs a list of candidate values, got none"),
    (
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=[str(i) for i in range((1 << 20) + 1)]),
        f"{OPEN_LIST} 1048576, got 1048577",
    ),
    (
        most_likely_of_a_long_list,
        f"{OPEN_LIST} 8192 for estimator 'em', got 8193",
    ),
    (
        lambda: LONG_LIST.estimate(LONG_LIST.count(LONG_LIST.perturb(["0"])), candidates=["0"]),
        "non-sensitive values of an open alphabet that share clear buckets must be at most 8192, got 8193",
    ),
    (
        lambda: CLOSED.estimate(COUNTS, candidates=["ant", "yak"]),
        f"{ID} has a closed alphabet of 6 values, got 1 candidate(s) outside this list",
    ),
    (
        InsufficientCohortsError,
        lambda: discover(WORDS, ONE_LEVEL),
        "a search for values needs reports of each of the 2 levels, got none of level 1",
    ),
    (TypeError, lambda: CLOSED.perturb(["ant", ["bee"]]), "values must be text (str), got list in row 1"),
    (TypeError, lambda: CLOSED.perturb([7]), "values must be text (str), got int in row 0"),
    (
        TypeError,
        lambda: OPEN.perturb(["ant", None, "bee", float("nan")]),
        "values must be text (str), got NoneType in row 1 and 1 more",
    ),
    (
        BudgetSpentError,
        lambda folder: client_of(epsilon=0.5)(folder).report("ant", 0),
        "Budget.epsilon must not be exceeded, got 0 of 0.5 spent and a report that adds 1",
    ),
    (NoReportsError, lambda: estimate_numbers(OF_NUMBERS, CohortCounts.empty(1, 3)), "no reports"),
    (
        TypeError,
        lambda: CLOSED.perturb(["ant"], rng=1),
        "rng must be None, a numpy.random.Generator or a word source, got int",
    ),
    (
        InsufficientCohortsError,
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=[str(i) for i in range(8193)]),
        f"{ID}: 8193 candidates need at least 2731 reporting cohorts, got {np.count_nonzero(OPEN_COUNTS.num_reports)}",
    ),
    (
        NoReportsError,
        lambda: CLOSED.estimate(CohortCounts.empty(1, 6)),
        f"{ID}: an estimate needs at least 1 report, got 0",
    ),
    (
        InsufficientCohortsError,
        lambda: OPEN.estimate(OPEN.count(OPEN.perturb(["ant"])), candidates=VALUES),
        f"{ID}: 6 candidates need at least 2 reporting cohorts, got 1",
    ),
    (
        IllConditionedError,
        estimate_two_values_that_share_all_buckets,
        f"{ID}: 2 candidates must be distinguishable with a condition number below 1e+08, got ",
    ),
    *rows_of(refusals_of_ldp),
]
SENTENCES = with_kinds(REFUSED)


@pytest.mark.parametrize(("kind", "call", "sentence"), SENTENCES, ids=[row[2][:60] for row in SENTENCES])
def test_sentence(kind, call, sentence, tmp_path):
    with pytest.raises(kind) as caught:
        call(tmp_path) if inspect.signature(call).parameters else call()
    said = str(caught.value).replace(str(tmp_path / "c.json"), "FILE")
    assert said.startswith(sentence) if sentence.endswith(" ") else said == sentence
    assert type(caught.value) is kind


# ---------------------------------------------------------------------- the table is complete


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_refusal_has_a_row(source):
    sentences = [sentence + "..." * sentence.endswith(" ") for _, _, sentence in SENTENCES]
    # test_named_sums.py comes through these, most of them by a specification, which names itself
    sentences += [sentence.removeprefix("JobSpec.") for *_, sentence in REFUSED_SUMS]
    missing = [
        place for place, text in refusals(source) if not any(re.fullmatch(text, sentence) for sentence in sentences)
    ]
    assert not missing


def test_the_refusals_are_found():
    assert len({place for source in SOURCES for place, _ in refusals(source)}) > 50


KINDS = sorted({kind for kind, _, _ in SENTENCES} - {TypeError, ImportError}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_of_the_library_are_value_errors_with_one_base(kind):
    assert issubclass(kind, UldpError)
    assert issubclass(kind, ValueError)
