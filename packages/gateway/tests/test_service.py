"""The commands of docs/service.md: a canary that sings, one that does not, a backup that is restored, keys replaced."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from packages.follow.tests.support.spools import Followed
from packages.gateway.tests.support.gateways import gateway
from tests.project.documents import DOCS, ROOT, blocks
from tests.support.messages_cases import single
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms_gateway.openapi import document

PAGE = (DOCS / "service.md").read_text(encoding="utf-8")
CANARY, BACK_UP, RESTORE = (block.code for block in blocks(DOCS / "service.md", "sh"))
FORM = ROOT / "deploy/canary/canary.json"


def shell(commands: str, **names: object) -> subprocess.CompletedProcess[str]:
    """Run commands of the page in the root of the checkout, each of which must succeed but the last."""
    environment = os.environ | {name: str(value) for name, value in names.items()} | {"PYTHONPATH": str(ROOT)}
    text = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\nset -e\n{commands}'
    return subprocess.run(["bash", "-c", text], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def collection() -> Collection:
    return Collection.from_json(json.loads(FORM.read_text("utf-8")))


def estimated(spool: Path, folder: Path) -> Path:
    """The output directory of the files of a spool."""
    files = ["--input", str(spool / "*.avro"), "--manifest", str(spool / "*.manifest.json")]
    assert estimate.main(["--collection", str(FORM), *files, "--window", "1h", "--output", str(folder)]) == 0
    return folder


def test_the_canary_is_heard_and_missed(tmp_path: Path) -> None:
    """Send and check as the page says; then with reports of another value in its place."""
    send, check = CANARY.strip().splitlines()
    with gateway([f"--spool={tmp_path / 'spool'}", "--spool_every=100ms"], tmp_path, collection()) as running:
        done = shell(send, GATEWAY=running.address)
        assert (done.returncode, done.stdout) == (0, '202 {"spooled":1000}\n'), done.stderr
        running.process.terminate()
        assert running.process.wait(600) == 0
    out = estimated(tmp_path / "spool", tmp_path / "out")
    done = shell(check, OUT=out, METRICS=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"canary: 1000 reports, share of up [01]\.\d{3}, \d\.\d standard errors off\n", done.stdout)
    gauges = dict(re.findall(r"^(uldp_canary_\w+) (\S+)$", (tmp_path / "uldp_canary.prom").read_text("utf-8"), re.M))
    assert float(gauges["uldp_canary_reports"]) == 1000
    assert abs(float(gauges["uldp_canary_frequency"]) - 1) < 6 * float(gauges["uldp_canary_standard_error"])

    with gateway([f"--spool={tmp_path / 'other'}", "--spool_every=100ms"], tmp_path, collection()) as running:
        wrong = collection().perturb(["up"] * 800 + ["down"] * 200)
        assert running.send(wire.encode_batch(wrong)).status == 202
        running.process.terminate()
        assert running.process.wait(600) == 0
    out = estimated(tmp_path / "other", tmp_path / "out of others")
    assert shell(check, OUT=out, METRICS=tmp_path).returncode == 1


def test_a_canary_that_is_refused_says_so(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("key-of-the-canary-0123456789 canary\n", encoding="utf-8")
    options = [f"--spool={tmp_path / 'spool'}", f"--token_file={tmp_path / 'keys'}"]
    send = CANARY.strip().splitlines()[0]
    with gateway(options, tmp_path, collection()) as running:
        done = shell(send, GATEWAY=running.address)
        assert done.returncode == 1 and "HTTP Error 401" in done.stderr
        done = shell(f"{send} {shlex.quote(str(tmp_path / 'keys'))}", GATEWAY=running.address)
        assert (done.returncode, done.stdout) == (0, '202 {"spooled":1000}\n')


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    """A spool of three counted files with their backup, and two more files, counted after it."""
    found = Followed(tmp_path)
    for _ in range(3):
        found.add_file(reports=20)
    found.steps(2)
    done = shell(BACK_UP, OUT=found.output, SPOOL=found.spool, BACKUP=tmp_path / "backup")
    assert done.returncode == 0, done.stderr
    for _ in range(2):
        found.add_file(reports=20)
    found.steps(2)
    return found


def restore(followed: Followed) -> None:
    backup = followed.spool.parent / "backup"
    done = shell(RESTORE, OUT=followed.output, SPOOL=followed.spool, BACKUP=backup)
    assert done.returncode == 0, done.stderr


def test_a_lost_output_is_restored_without_a_loss(followed: Followed) -> None:
    shutil.rmtree(followed.output)
    restore(followed)
    followed.steps(2)
    followed.assert_exact()


def test_a_lost_spool_loses_no_counted_report(followed: Followed) -> None:
    counts, sums = followed.counts(followed.output), followed.sums(followed.output)
    shutil.rmtree(followed.spool)
    restore(followed)
    (followed.spool / "lock").touch()
    followed.steps(2)
    assert (followed.counts(followed.output), followed.sums(followed.output)) == (counts, sums)
    followed.add_file(reports=20)
    followed.steps(2)
    received = sum(number for key, number in followed.sums(followed.output).items() if key[-1] == "received")
    assert received == sum(number for key, number in sums.items() if key[-1] == "received") * 6 / 5


def test_after_the_loss_of_both_the_backup_counts_and_goes_on(followed: Followed) -> None:
    shutil.rmtree(followed.output)
    shutil.rmtree(followed.spool)
    restore(followed)
    (followed.spool / "lock").touch()
    followed.add_file(reports=20)
    followed.steps(2)
    followed.assert_exact()  # of the three files of the backup, and the new one


def test_a_gateway_goes_on_with_a_restored_spool(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with gateway([f"--spool={spool}", "--spool_every=100ms"], tmp_path) as running:
        assert running.send(single()).status == 202
        running.process.terminate()
        assert running.process.wait(600) == 0
    (tmp_path / "out").mkdir()
    names = {"OUT": tmp_path / "out", "SPOOL": spool, "BACKUP": tmp_path / "backup"}
    assert shell(BACK_UP, **names).returncode == 0
    kept = {path.name for path in spool.glob("*.avro")}
    shutil.rmtree(spool)
    assert shell(RESTORE, **names).returncode == 0
    with gateway([f"--spool={spool}"], tmp_path) as running:
        assert running.send(single()).status == 202
        running.process.terminate()
        assert running.process.wait(600) == 0
    assert len(kept) == 1 and kept < {path.name for path in spool.glob("*.avro")}


def test_a_key_is_replaced_without_a_refused_app(tmp_path: Path) -> None:
    """Old key, both, new key: an app with either key is served until the old one is removed."""
    old, new = "old-key-of-the-app-0123456789", "new-key-of-the-app-0123456789"
    served = []
    for keys in ([old], [old, new], [new]):
        (tmp_path / "keys").write_text("".join(f"{key} app\n" for key in keys), encoding="utf-8")
        options = [f"--spool={tmp_path / 'spool'}", f"--token_file={tmp_path / 'keys'}", "--pack_every=20ms"]
        with gateway(options, tmp_path) as running:
            served.append([running.send(single(), Authorization=f"Bearer {key}").status for key in (old, new)])
            running.process.terminate()
            assert running.process.wait(600) == 0
    assert served == [[202, 401], [202, 202], [401, 202]]


def test_every_promise_names_a_test_that_exists() -> None:
    table = PAGE.split("## What is promised")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) >= 8
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            [path] = [path for folder in ("tests", "packages") for path in (ROOT / folder).rglob(file)]
            assert f"def {test}(" in path.read_text("utf-8"), f"{file}::{test}"


def test_a_client_is_told_which_answers_are_promises() -> None:
    """Only 200 and 202 say that a report may be deleted because it is safe."""
    responses = document()["paths"]["/reports"]["post"]["responses"]
    said = {status for status, found in responses.items() if "Delete the message" in found["description"]}
    assert said == {"200", "202"}
