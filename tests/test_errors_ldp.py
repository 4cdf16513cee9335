"""Every sentence that the library says when it refuses something: class.field, what is allowed, what came."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import COLLECTIONS, DECOMPOSED, VALUES

from uldp_transforms import ldp
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch, SpecError, UldpError
from uldp_transforms.ldp.alphabets import ALPHABETS, Closed, Hashed, Permuted
from uldp_transforms.ldp.errors import IllConditionedError, InsufficientCohortsError, NoReportsError
from uldp_transforms.ldp.estimators import Empirical
from uldp_transforms.ldp.mechanisms import MECHANISMS, KaryRR, Rappor, UtilityOptimizedRappor, UtilityOptimizedRR
from uldp_transforms.ldp.mechanisms.subset_selection import SubsetSelection
from uldp_transforms.ldp.specs import parse_json

SOURCES = sorted(Path(ldp.__file__).parent.rglob("*.py"))

CLOSED, OPEN = COLLECTIONS["closed-krr"], COLLECTIONS["hashed-krr"]
BATCH = CLOSED.perturb(["ant", "bee"])
COUNTS = CLOSED.count(BATCH)
OPEN_COUNTS = OPEN.count(OPEN.perturb(["ant", "bee"]))
SPEC = CLOSED.to_json()


def spec(**fields: Any) -> Callable[[], Any]:
    return lambda: Collection.from_json(SPEC | fields)


def krr(**fields: Any) -> Callable[[], Any]:
    return lambda: KaryRR(**{"num_symbols": 3, "num_sensitive": 3, "epsilon": 1} | fields)


def closed(*values: Any, **fields: Any) -> Callable[[], Any]:
    return lambda: Closed(values=values, **fields)


def batch(**columns: Any) -> ReportBatch:
    names = ("fingerprint", "cohorts", "payloads", "event_times", "report_ids")
    return ReportBatch(**{name: getattr(BATCH, name) for name in names} | columns)


def file_of(content: bytes) -> Callable[[Path], Any]:
    """Reads a collection file with this content; the table says FILE for its path."""

    def read(folder: Path) -> Collection:
        (folder / "c.json").write_bytes(content)
        return Collection.from_json(folder / "c.json")

    return read


def estimate_with_an_estimator_for_nobody() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Empirical, "supports", lambda self, collection: False)
        CLOSED.estimate(COUNTS, "empirical")


def estimate_two_values_that_share_all_buckets() -> None:
    table = OPEN.alphabet.symbol_table(MANY, OPEN.num_cohorts)[:2]
    first = next(i for i in range(1, len(MANY)) if (table[:, i] == table[:, 0]).all())
    cells = np.zeros((OPEN.num_cohorts, OPEN.num_cells), dtype=np.int64)
    cells[:2] = 10
    OPEN.estimate(CohortCounts(cells.sum(axis=1), cells), candidates=(MANY[0], MANY[first]))


MANY = tuple(f"value {i}" for i in range(200))
INT, FLOAT = np.zeros(2, dtype=np.int64), np.zeros(2)
ID, TIME = "collection 'animals'", "(milliseconds since 1970 UTC)"

# (class of the error, call, whole sentence; or its beginning, up to a space, where the rest is not ours to choose)
SENTENCES: list[tuple[type[Exception], Callable[..., Any], str]] = [
    # collection
    (
        SpecError,
        spec(id="Animals!"),
        "Collection.id must be 1 to 64 of the letters a-z, 0-9, '.', '_' and '-', got 'Animals!'",
    ),
    (
        SpecError,
        spec(id="x" * 65),
        f"Collection.id must be 1 to 64 of the letters a-z, 0-9, '.', '_' and '-', got '{'x' * 56}...",
    ),
    (SpecError, spec(version=0), "Collection.version must be an integer in [1, 2147483647], got 0"),
    (SpecError, spec(version=1.0), "Collection.version must be an integer in [1, 2147483647], got 1.0"),
    (SpecError, spec(num_cohorts=65_537), "Collection.num_cohorts must be an integer in [1, 65536], got 65537"),
    (SpecError, spec(num_cohorts=True), "Collection.num_cohorts must be an integer in [1, 65536], got True"),
    (
        SpecError,
        spec(alphabet={"id": "hashed", "num_buckets": 65_536}, num_cohorts=65),
        "Collection.num_cohorts times the number of symbols must be at most 4194304 counters, got 65 x 65536",
    ),
    (
        SpecError,
        spec(alphabet={"id": "hashed", "num_buckets": 4}, num_cohorts=1),
        "Collection.num_cohorts must be at least 2 for a hashed alphabet (one hash function cannot tell colliding "
        "values apart), got 1",
    ),
    (
        SpecError,
        spec(alphabet={"id": "permuted", "values": list(VALUES), "num_buckets": 3}, num_cohorts=2),
        "Collection.num_cohorts must be at least 3 to tell 6 values apart with 3 buckets, got 2",
    ),
    (SpecError, lambda: Collection.from_json({}), "Collection needs the key 'id', got no keys"),
    (
        SpecError,
        lambda: Collection.from_json({"id": "a", "version": 1}),
        "Collection needs the key 'alphabet', got 'id', 'version'",
    ),
    (
        SpecError,
        spec(epsilon=1),
        "Collection takes the keys id, version, alphabet, mechanism, num_cohorts, got 'epsilon'",
    ),
    (SpecError, spec(alphabet=["closed"]), "alphabet must be a JSON object, got ['closed']"),
    (SpecError, spec(mechanism="krr"), "mechanism must be a JSON object, got 'krr'"),
    (SpecError, file_of(b"[1]"), "Collection must be a JSON object, got [1]"),
    (
        SpecError,
        lambda: Collection(id="a", version=1, alphabet=OPEN.alphabet, mechanism=CLOSED.mechanism, num_cohorts=2),
        "Collection.mechanism must be for the alphabet's 4 symbols, 4 of them sensitive, got 6 and 6",
    ),
    # files
    (SpecError, file_of(b"\xff"), "FILE must be a UTF-8 text file, got other bytes"),
    (SpecError, file_of(b"{\n'"), "FILE must be JSON, got a fault at line 2: "),
    (SpecError, file_of(b'{"id": "a", "b": 1, "id": "c"}'), "FILE must not repeat a key, got id more than once"),
    (SpecError, file_of(b"1" * 5000), "FILE must be JSON of sensible size, got too many digits or levels"),
    (SpecError, file_of(b"[" * 100_000), "FILE must be JSON of sensible size, got too many digits or levels"),
    (SpecError, lambda: parse_json("[-Infinity]", "it"), "it must hold finite numbers, got -Infinity"),
    # registries
    (SpecError, spec(alphabet={"id": "none"}), "alphabet.id must be one of closed, hashed, permuted, got 'none'"),
    (
        SpecError,
        spec(mechanism={"epsilon": 1}),
        f"mechanism.id must be one of {', '.join(sorted(MECHANISMS))}, got None",
    ),
    (
        SpecError,
        lambda: CLOSED.estimate(COUNTS, "best"),
        "estimator.id must be one of empirical, normalized, projected, got 'best'",
    ),
    (
        SpecError,
        lambda: ALPHABETS.register(Hashed),
        "alphabet.id must be new, got 'hashed', which Hashed has",
    ),
    (SpecError, spec(mechanism={"id": "krr"}), "KaryRR needs the key 'epsilon', got no keys"),
    (
        SpecError,
        spec(mechanism={"id": "urap", "epsilon": 1, "num_symbols": 6}),
        "UtilityOptimizedRappor takes the keys epsilon, theta, got 'num_symbols'",
    ),
    # alphabets
    (SpecError, lambda: Closed(values="abc"), "Closed.values must be a list of texts, got 'abc'"),
    (SpecError, closed("a", 1), "Closed.values must be a list of texts, got ('a', 1)"),
    (SpecError, closed("a"), "Closed.values must have at least 2 entries, got 1"),
    (SpecError, closed("a", "\ud800"), "Closed.values must be Unicode text, got '\\ud800'"),
    (SpecError, closed("a", "b", "a"), "Closed.values must not repeat an entry (in Unicode NFC), got 'a' twice"),
    (SpecError, closed("é", DECOMPOSED), "Closed.values must not repeat an entry (in Unicode NFC), got 'é' twice"),
    (SpecError, closed("a", "b", sensitive=()), "Closed.sensitive must have at least 1 entries, got 0"),
    (SpecError, closed("a", "b", sensitive="a"), "Closed.sensitive must be a list of texts, got 'a'"),
    (
        SpecError,
        closed("a", "é", sensitive=("é", DECOMPOSED)),
        "Closed.sensitive must not repeat an entry (in Unicode NFC), got 'é' twice",
    ),
    (SpecError, closed("a", "b", sensitive=("c",)), "Closed.sensitive must be a part of Closed.values, got 'c'"),
    (SpecError, lambda: Permuted(values=("a",), num_buckets=2), "Permuted.values must have at least 2 entries, got 1"),
    (
        SpecError,
        lambda: Permuted(values=("a", "b"), num_buckets=3),
        "Permuted.num_buckets must be an integer in [2, 2], got 3",
    ),
    (
        SpecError,
        lambda: Permuted(values=("a", "b"), num_buckets=2, seed=-1),
        "Permuted.seed must be an integer in [0, 18446744073709551615], got -1",
    ),
    (SpecError, lambda: Hashed(num_buckets=1), "Hashed.num_buckets must be an integer in [2, 65536], got 1"),
    (
        SpecError,
        lambda: Hashed(num_buckets=2, seed=2**64),
        "Hashed.seed must be an integer in [0, 18446744073709551615], got 18446744073709551616",
    ),
    (
        SpecError,
        lambda: Hashed(num_buckets=2, num_hashes=2),
        "Hashed.num_hashes must be an integer in [1, 1], got 2",
    ),
    (
        SpecError,
        lambda: CLOSED.perturb(["ant", "yak", "gnu"]),
        "Closed.values lists 6 values, got 2 value(s) that are not among them",
    ),
    (
        SpecError,
        lambda: COLLECTIONS["permuted-krr"].perturb(["yak"]),
        "Permuted.values lists 6 values, got 1 value(s) that are not among them",
    ),
    (SpecError, lambda: CLOSED.perturb("ant"), "values must be a list of texts, got one str"),
    (SpecError, lambda: OPEN.estimate(OPEN_COUNTS, candidates="ant"), "candidates must be a list of texts, got 'ant'"),
    (TypeError, lambda: CLOSED.perturb([7]), "values must be text (str), got int"),
    (
        SpecError,
        lambda: OPEN.perturb(["\ud800"]),
        "values must be Unicode text, got one with a surrogate, which has no UTF-8 form",
    ),
    # mechanisms
    (SpecError, krr(num_symbols=1), "KaryRR.num_symbols must be an integer in [2, 1048576], got 1"),
    (
        SpecError,
        lambda: UtilityOptimizedRR(num_symbols=3, num_sensitive=4, epsilon=1),
        "UtilityOptimizedRR.num_sensitive must be an integer in [1, 3], got 4",
    ),
    (SpecError, krr(epsilon=0), "KaryRR.epsilon must be a number in (0, 16], got 0"),
    (SpecError, krr(epsilon=float("nan")), "KaryRR.epsilon must be a number in (0, 16], got nan"),
    (SpecError, krr(epsilon="1"), "KaryRR.epsilon must be a number in (0, 16], got '1'"),
    (SpecError, krr(epsilon=True), "KaryRR.epsilon must be a number in (0, 16], got True"),
    (SpecError, krr(epsilon=16.1), "KaryRR.epsilon must be a number in (0, 16], got 16.1"),
    (
        SpecError,
        krr(epsilon=1e-20),
        "KaryRR.epsilon must be large enough to leave a signal in 64 bits, got 1e-20",
    ),
    (
        SpecError,
        lambda: Rappor(num_symbols=3, num_sensitive=3, epsilon=1, theta=1),
        "Rappor.theta must be a number in (0, 1), got 1",
    ),
    (
        SpecError,
        lambda: UtilityOptimizedRappor(num_symbols=3, num_sensitive=3, epsilon=1, theta="1/2"),
        "UtilityOptimizedRappor.theta must be a number in (0, 1), got '1/2'",
    ),
    (
        SpecError,
        lambda: SubsetSelection(num_symbols=4, num_sensitive=4, epsilon=1, subset_size=4),
        "SubsetSelection.subset_size must be an integer in [1, 3], got 4",
    ),
    # reports
    (
        TypeError,
        lambda: CLOSED.perturb(["ant"], rng=1),
        "rng must be None, a numpy.random.Generator or a word source, got int",
    ),
    (
        SpecError,
        lambda: CLOSED.perturb(["ant"], event_times=[1.5]),
        f"event_times must be 1 integers {TIME}, got float64 (1,)",
    ),
    (
        SpecError,
        lambda: CLOSED.perturb(["ant"], event_times=[1, 2]),
        f"event_times must be 1 integers {TIME}, got int64 (2,)",
    ),
    (
        SpecError,
        lambda: batch(cohorts=INT),
        "ReportBatch.cohorts must be uint16 (2,), got int64 (2,)",
    ),
    (
        SpecError,
        lambda: batch(event_times=INT[:1]),
        "ReportBatch.event_times must be int64 (2,), got int64 (1,)",
    ),
    (
        SpecError,
        lambda: ReportBatch.concatenate([]),
        "ReportBatch.concatenate needs batches of exactly one collection",
    ),
    (
        SpecError,
        lambda: CLOSED.count(batch(fingerprint=bytes(32))),
        f"{ID} version 1 has the fingerprint {CLOSED.fingerprint.hex()[:16]}..., got reports for 0000000000000000...",
    ),
    (
        SpecError,
        lambda: CLOSED.count(batch(payloads=np.zeros((2, 3), dtype=np.uint8))),
        f"{ID} has payloads of 1 bytes and cohorts below 1, got payloads of 3 bytes and cohorts up to 0",
    ),
    (
        SpecError,
        lambda: CLOSED.count(batch(cohorts=np.array([0, 9], dtype=np.uint16))),
        f"{ID} has payloads of 1 bytes and cohorts below 1, got payloads of 1 bytes and cohorts up to 9",
    ),
    (
        SpecError,
        lambda: CLOSED.count(batch(payloads=np.array([[5], [6]], dtype=np.uint8))),
        f"{ID} counts valid payloads only, got 1 invalid one(s)",
    ),
    # counts
    (
        SpecError,
        lambda: CohortCounts(FLOAT, COUNTS.cells),
        "CohortCounts.num_reports must be an int64 array of 1 dimension(s), got float64 (2,)",
    ),
    (
        SpecError,
        lambda: CohortCounts(INT, [[1]]),
        "CohortCounts.cells must be an int64 array of 2 dimension(s), got list",
    ),
    (
        SpecError,
        lambda: CohortCounts(INT, COUNTS.cells),
        "CohortCounts.cells must have one row per cohort (2), got 1",
    ),
    (
        SpecError,
        lambda: COUNTS + OPEN_COUNTS,
        "CohortCounts can be added only in equal shapes, got (1, 6) and (16, 4)",
    ),
    # estimates
    (
        SpecError,
        lambda: CLOSED.estimate(OPEN_COUNTS),
        f"{ID} has counts of shape (1, 6), got (16, 4)",
    ),
    (SpecError, estimate_with_an_estimator_for_nobody, f"estimator 'empirical' does not support {ID}"),
    (SpecError, lambda: OPEN.estimate(OPEN_COUNTS, candidates=[]), "candidates must have at least 1 entries, got 0"),
    (SpecError, lambda: OPEN.estimate(OPEN_COUNTS, candidates=[7]), "candidates must be a list of texts, got (7,)"),
    (
        SpecError,
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=[["ant"]]),
        "candidates must be a list of texts, got (['ant'],)",
    ),
    (
        SpecError,
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=["ant", "ant"]),
        "candidates must not repeat an entry (in Unicode NFC), got 'ant' twice",
    ),
    (
        SpecError,
        lambda: OPEN.estimate(OPEN_COUNTS),
        f"{ID} has an open alphabet and needs a list of candidate values, got none",
    ),
    (
        SpecError,
        lambda: OPEN.estimate(OPEN_COUNTS, candidates=[str(i) for i in range(8193)]),
        "candidates of an open alphabet must be at most 8192, got 8193",
    ),
    (
        SpecError,
        lambda: CLOSED.estimate(COUNTS, candidates=["ant", "yak"]),
        f"{ID} has a closed alphabet of 6 values, got 1 candidate(s) that are not among them",
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
]


@pytest.mark.parametrize(("kind", "call", "sentence"), SENTENCES, ids=[row[2][:60] for row in SENTENCES])
def test_sentence(kind, call, sentence, tmp_path):
    needs_folder = call.__code__.co_argcount > 0
    with pytest.raises(kind) as caught:
        call(tmp_path) if needs_folder else call()
    said = str(caught.value).replace(str(tmp_path / "c.json"), "FILE")
    assert said.startswith(sentence) if sentence.endswith(" ") else said == sentence
    assert type(caught.value) is kind


# ---------------------------------------------------------------------- the table is complete


def pattern(node: ast.expr) -> str:
    """A regular expression for the texts that an expression can be: fixed parts literally, anything for the rest."""
    if isinstance(node, ast.Constant):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(pattern, node.values))
    return ".+"


def refusals(source: Path) -> Iterator[tuple[str, str]]:
    """(place, pattern of the sentence) of each ``raise`` and of each ``require_...`` in a file."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        place = f"{source.relative_to(SOURCES[0].parent)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield place, pattern(node.exc.args[0])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("require_"):
            yield place, pattern(node.args[0]) + " (must|needs|takes) .+"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_refusal_has_a_row(source):
    sentences = [sentence + "..." * sentence.endswith(" ") for _, _, sentence in SENTENCES]
    missing = [
        place for place, text in refusals(source) if not any(re.fullmatch(text, sentence) for sentence in sentences)
    ]
    assert not missing


def test_the_refusals_are_found():
    assert len({place for source in SOURCES for place, _ in refusals(source)}) > 50


KINDS = sorted({kind for kind, _, _ in SENTENCES} - {TypeError}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_of_the_library_are_value_errors_with_one_base(kind):
    assert issubclass(kind, UldpError)
    assert issubclass(kind, ValueError)
