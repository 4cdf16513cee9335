"""The client in JavaScript: its own tests, and its reports through the main job; in Node, and in a browser."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import ALL_COLLECTIONS, VALUES
from tests.support.messages_cases import NOON, container, decoder, num_reports, write_files
from tests.support.tolerance import binomial_limits, generator, normal_limit, within
from tests.support.vectors import COLLECTIONS, MEMOS
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.client.client_form import client_form

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "javascript"
PATIENCE = 600.0

NODE, NPM = shutil.which("node"), shutil.which("npm")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node (Node.js 20 or newer) on the path")
needs_npm = pytest.mark.skipif(NPM is None, reason="there is no npm on the path")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium or google-chrome on the path")


def output(*command: str | None, folder: Path = CLIENT, stdin: bytes = b"") -> bytes:
    """What a program prints; fails if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=folder, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()[-4000:]
    return done.stdout


def pass_all(tests: Sequence[str]) -> bool:
    return b"# fail 0" in output(NODE, "--test", "--test-timeout=300000", "--test-reporter=tap", *tests)


TESTS = [str(path.relative_to(CLIENT)) for path in sorted((CLIENT / "test").glob("*.test.js"))]
VECTORS = "test/vectors.test.js"


@needs_node
def test_its_own_tests() -> None:
    """Among them all vectors, refusals, the queue, and its size."""
    assert VECTORS in TESTS and pass_all(TESTS)


@needs_node
def test_its_own_tests_but_vectors() -> None:
    """Those that take a second."""
    assert pass_all([name for name in TESTS if name != VECTORS])


@needs_npm
def test_the_package_has_what_programs_import(tmp_path: Path) -> None:
    [package] = json.loads(output(NPM, "pack", "--json", "--pack-destination", str(tmp_path)))
    files = {file["path"] for file in package["files"]}
    sources = {f"src/{path.name}" for path in (CLIENT / "src").iterdir()}
    entries = {f"{name}.{kind}" for name in ("index", "client") for kind in ("js", "d.ts")}
    assert files == {"package.json", "README.md", "LICENSE", "LICENSE.noble-hashes"} | entries | sources
    output("tar", "xzf", str(tmp_path / package["filename"]), folder=tmp_path)
    imported = b'import { Client } from "./package/index.js"; console.log(typeof Client.open)'
    assert output(NODE, "--input-type=module", "-", folder=tmp_path, stdin=imported) == b"function\n"
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


# ---------------------------------------------------------------------- through the main job

SHARES = dict(zip(VALUES, (0.28, 0.22, 0.2, 0.12, 0.1, 0.08)))
TAG_SHARE = 0.2
"""Of the people of tagged alphabets, those who hide their value behind "home"."""

SOME = [f"closed-sensitive-{mechanism}" for mechanism in ("krr", "urr", "urap", "uss", "uhr", "marginal")]
SOME += ["closed-tsp", "closed-aoue", "hashed-krr", "hashed-twice-rappor", "hashed-clear-urap", "tagged-known-uss"]
SOME += ["permuted-hr"]


def named(name: str) -> Collection:
    """A collection of the table under a name of its own."""
    return Collection.from_json(ALL_COLLECTIONS[name].to_json() | {"id": name})


def truth(collection: Collection) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of what people send, and of the values that the collector finds."""
    if collection.alphabet.id != "tagged":
        return SHARES, SHARES
    sent = {value: (1 - TAG_SHARE) * share for value, share in SHARES.items()}
    behind = collection.alphabet.to_json()["background"] or {}
    others = [value for value in VALUES if value not in collection.alphabet.to_json()["sensitive"]]
    total = sum(sent[value] for value in others)
    hidden = behind.get("home") or {value: sent[value] / total for value in others}
    return sent | {"home": TAG_SHARE}, {x: share + TAG_SHARE * hidden.get(x, 0.0) for x, share in sent.items()}


def messages_of(stream: bytes) -> Iterator[bytes]:
    """Each after its length."""
    at = 0
    while at < len(stream):
        size = int.from_bytes(stream[at : at + 4], "little")
        yield stream[at + 4 : at + 4 + size]
        at += 4 + size


def simulated(collections: Sequence[Collection], n: int) -> list[bytes]:
    """n reports of each, made by Node, whose values are drawn from the shares."""
    orders = []
    for collection in collections:
        sent, _ = truth(collection)
        drawn = generator("javascript", collection.id, n).multinomial(n, list(sent.values()))
        values = list(zip(sent, drawn.tolist()))
        orders.append({"form": client_form(collection), "values": values, "eventTime": NOON})
    stream = output(NODE, "tools/simulate.js", stdin=json.dumps(orders).encode())
    return list(messages_of(stream))


def z_scores(collections: Sequence[Collection], n: int, folder: Path) -> dict[tuple[str, str], float]:
    """The main job reads the reports from a file; how far its estimates are from the truth, in standard errors."""
    messages = simulated(collections, n)
    assert len(messages) == n * len(collections)
    blocks = [(n, b"".join(messages[i : i + n])) for i in range(0, len(messages), n)]
    files: dict[str, Any] = {f"{collection.id}.json": collection for collection in collections}
    write_files(folder, files | {"reports.avro": container(blocks), "candidates.txt": "\n".join(VALUES)})
    argv = [word for name in files for word in ("--collection", str(folder / name))]
    argv += ["--input", str(folder / "reports.avro"), "--output", str(folder / "output")]
    argv += ["--candidates", str(folder / "candidates.txt"), "--estimator", "empirical"]
    assert estimate.main(argv) == 0
    ledger = [json.loads(line) for line in (folder / "output" / "ledger.jsonl").read_text("utf-8").splitlines()]
    assert [(row["received"], row["accepted"], row["rejected"]) for row in ledger] == [(n, n, {})] * len(collections)
    found = {}
    for line in (folder / "output" / "estimates.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        _, shares = truth({item.id: item for item in collections}[row["collection_id"]])
        for entry in row["estimates"]:
            error = entry["raw_frequency"] - shares.get(entry["value"], 0.0)
            found[row["collection_id"], entry["value"]] = error / entry["standard_error"]
    return found


@needs_node
def test_reports_of_some_kinds_are_estimated(tmp_path: Path) -> None:
    scores = z_scores([named(name) for name in SOME], 2_000, tmp_path)
    assert {name for name, _ in scores} == set(SOME)
    assert np.abs(list(scores.values())).max() < normal_limit(len(scores))


FALSE_ALARMS = 1e-4
"""Of the slow test, over all its comparisons; 5.2 standard errors."""


@needs_node
@pytest.mark.slow
def test_reports_of_all_kinds_are_estimated(tmp_path: Path) -> None:
    scores = z_scores([named(name) for name in ALL_COLLECTIONS], 20_000, tmp_path)
    assert {name for name, _ in scores} == set(ALL_COLLECTIONS)
    worst = max(scores, key=lambda key: abs(scores[key]))
    print(f"{len(scores)} values; the worst, {' '.join(worst)}, is off by {scores[worst]:.2f} standard errors")
    assert abs(scores[worst]) < normal_limit(len(scores), FALSE_ALARMS / len(scores))


def with_memos(name: str) -> Collection:
    """A collection of the table for people who report again."""
    spec = ALL_COLLECTIONS[name].to_json()
    mechanism = spec["mechanism"] | {"epsilon_inf": 2 * spec["mechanism"]["epsilon"]}
    return Collection.from_json(spec | {"id": f"memo-{name}", "mechanism": mechanism})


@needs_node
def test_memos_of_people_are_estimated(tmp_path: Path) -> None:
    """Each report is of another device, with a secret, and so a cohort and a memo, of its own."""
    collections = [with_memos(name) for name in ("closed-sensitive-krr", "closed-sensitive-uss", "hashed-krr")]
    scores = z_scores(collections, 1_000, tmp_path)
    assert np.abs(list(scores.values())).max() < normal_limit(len(scores))


@needs_node
def test_costs_are_those_of_the_reference() -> None:
    """What t reports of one symbol say, computed in floats from the form alone."""
    orders = [(Collection.from_json(spec), t) for spec in MEMOS.values() for t in (1, 2, 7, 365)]
    asked = json.dumps([(client_form(collection), t) for collection, t in orders]).encode()
    costs = json.loads(output(NODE, "tools/costs.js", stdin=asked))
    expected = [collection.mechanism.epsilon_after(t) for collection, t in orders]
    np.testing.assert_allclose(costs, expected, rtol=1e-9)


@needs_node
def test_another_order_of_symbols_is_refused(tmp_path: Path) -> None:
    """The job would take one value for another."""
    collection = named("closed-sensitive-krr")
    form = client_form(collection)
    form["symbols"] = {"rule": "list", "symbols": list(VALUES)}
    order = json.dumps([{"form": form, "values": [["ant", 1]], "eventTime": NOON}]).encode()
    done = subprocess.run([str(NODE), "tools/simulate.js"], cwd=CLIENT, input=order, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"UldpError: symbols must be what follows from canonical (the value is not shown)" in done.stderr


MEMBERS = ("constructor", "toString", "valueOf", "hasOwnProperty", "__proto__", "__defineGetter__")
PROGRAM = """
import { readFileSync } from "node:fs";
import { Client } from "./index.js";
const { form, names } = JSON.parse(readFileSync(0, "utf-8"));
const client = await Client.open(form);
const sent = names.map((name) => client.report(name, 0, { constructor: name, valueof: name }));
console.log(JSON.stringify(sent.map((message) => Array.from(message.slice(-3)))));
"""


@needs_node
def test_names_of_members_of_objects_are_values_and_groups() -> None:
    """Of dimensions and values; a wrong symbol is sent with probability 6e-7 each."""
    names = [*MEMBERS]
    spec = {"id": "constructor", "version": 1, "alphabet": {"id": "closed", "values": names}}
    dimensions = [{"name": name, "values": names} for name in ("constructor", "valueof")]
    collection = Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 16.0}, "dimensions": dimensions})
    asked = json.dumps({"form": client_form(collection), "names": names}).encode()
    sent = json.loads(output(NODE, "--input-type=module", "-e", PROGRAM, stdin=asked))
    groups, _, symbols = zip(*sent)  # a group is a signed number on the wire
    assert list(symbols) == [*range(len(names))]
    assert list(groups) == [2 * (at * (len(names) + 1) + at) for at in range(len(names))]


# ---------------------------------------------------------------------- in a browser

BROWSED = ("order-krr", "seed-odd", "texts-permuted", "clear-bytes-3")
PAGE = """<!doctype html><meta charset="utf-8"><script type="module">
import { BrowserState, BrowserStorage, Client, MemoClient, Queue } from "/clients/javascript/index.js";
import { FILES, compare } from "/clients/javascript/test/vectors.js";

async function run() {
  const read = async (name) => [name, await (await fetch(`/schemas/vectors/${name}.json`)).json()];
  const records = Object.fromEntries(await Promise.all(FILES.map(read)));
  const compared = await compare(records);
  const forms = Object.fromEntries(records.collections.map(({ name, client }) => [name, client]));
  const sent = [];
  const send = async (bytes) => void sent.push(Array.from(bytes));
  for (const [name, value] of WANTED) {
    const client = await Client.open(forms[name]);
    for (let i = 0; i < 100; i++) await new Queue({ send, storage: new BrowserStorage() }).add(client.report(value));
  }
  const flushed = await new Queue({ send, storage: new BrowserStorage() }).flush();
  const left = localStorage.length;
  return { compared, flushed, sent, left, memos: await memos(records.memos[0].client), agent: navigator.userAgent };
}

async function memos(form) {
  const open = () => MemoClient.open(form, { storage: new BrowserState(), budget: { epsilon: 1 } });
  const reports = [];
  for (let day = 0; day < 100; day++) reports.push((await (await open()).report("flu", day * 86_400_000)).at(-1));
  const name = "uldp-client";
  const opening = indexedDB.open(name);
  await new Promise((resolve) => (opening.onsuccess = resolve));
  const request = opening.result.transaction("keys").objectStore("keys").get(name);
  await new Promise((resolve) => (request.onsuccess = resolve));
  const copied = await crypto.subtle.exportKey("raw", request.result).then(() => true, () => false);
  opening.result.close();
  await new Promise((resolve) => (indexedDB.deleteDatabase(name).onsuccess = resolve));
  const lost = await open().then(() => "taken", ({ message }) => message);
  return { reports, state: JSON.parse(localStorage.getItem(name)), copied, lost };
}
const answer = await run().catch((error) => ({ error: `${error}` }));
await fetch("/answer", { method: "POST", body: JSON.stringify(answer) });
</script>"""


class Pages(http.server.SimpleHTTPRequestHandler):
    """The checkout, one page more, and an answer."""

    page: str
    answers: list[Any]
    answered: threading.Event

    def do_GET(self) -> None:
        if self.path != "/page.html":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def do_POST(self) -> None:
        self.answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()
        self.answered.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def served(page: str) -> Iterator[tuple[str, type[Pages]]]:
    """The address of the page, and the class that has its answers."""
    handler = type("Handler", (Pages,), {"page": page, "answers": [], "answered": threading.Event()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(ROOT))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/page.html", handler
        server.shutdown()
        thread.join()


@needs_chromium
def test_a_browser_makes_the_same(tmp_path: Path) -> None:
    """All vectors, in Chromium; its reports, through localStorage, are accepted; and a key that is not to be copied."""
    wanted = json.dumps([[name, "flu" if name == "order-krr" else "a"] for name in BROWSED])
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    with served(PAGE.replace("WANTED", wanted)) as (address, pages):
        browser = subprocess.Popen(
            [str(CHROMIUM), *options, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert pages.answered.wait(PATIENCE)
        finally:
            browser.terminate()
            browser.wait(PATIENCE)
    [answer] = pages.answers
    assert "error" not in answer, answer
    assert (answer["flushed"], answer["left"]) == (400, 0)
    assert answer["compared"] > 1000
    kept = answer["memos"]
    assert ("secret" in kept["state"], len(kept["state"]["key"]), kept["copied"]) == (False, 64, False)
    assert kept["lost"] == "the key of the storage must stay, got another one"
    mechanism: Any = Collection.from_json(MEMOS["memo-krr"]).mechanism
    share = mechanism.repeat_weight / 2**64 + mechanism.report_noise_weight / 2**64  # of the memo, one for all clients
    most = np.array([np.bincount(kept["reports"]).max()])
    assert within(most, binomial_limits(len(kept["reports"]), np.array([share]))).all()
    messages = [bytes(message) for message in answer["sent"]]
    batches, rejections, *_ = decoder([COLLECTIONS[name] for name in BROWSED]).decode(messages)
    assert not rejections
    assert num_reports(batches, rejections) == 400
