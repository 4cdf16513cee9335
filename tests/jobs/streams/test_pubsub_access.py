"""A wrong address of Pub/Sub, or a wrong name there, is a sentence within seconds."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.servers.pubsub.pubsub_server import PubsubServer
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.pubsub import pubsub_access

COLLECTION = """{"version": 1, "id": "survey", "mechanism": {"id": "krr", "epsilon": 1.0},
  "alphabet": {"id": "closed", "values": ["0", "1"]}}"""

PROGRAMS = {
    "--subscription": "estimate --collection {0}/C.json --subscription projects/my-project/subscriptions/mine "
    "--output {0}/out --window 1h",
    "--topic": "simulate {0}/C.json --topic projects/my-project/topics/mine --values {0}/v.csv",
}


@pytest.fixture(params=PROGRAMS)
def refused(request, tmp_path, monkeypatch, capfd):
    """A function: host -> what the program says of it; it ends with 2 within 20 s."""
    (tmp_path / "C.json").write_text(COLLECTION)
    (tmp_path / "v.csv").write_text("value,event_time\n0,1000000000\n")
    options = PROGRAMS[request.param]

    def run(host: str) -> str:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", host)
        begin = time.monotonic()
        assert uldp.main(options.format(tmp_path).split()) == 2
        assert time.monotonic() - begin < 20
        sentence: str = capfd.readouterr().err
        name, _, rest = sentence.partition(": ")
        assert name in ("estimate", "simulate")
        assert not (Path(tmp_path) / "out").exists() or not list((tmp_path / "out").glob("*.jsonl"))
        return rest.removeprefix(request.param)

    return run


def test_an_address_where_nothing_listens(refused):
    assert refused("127.0.0.1:1") == " needs PUBSUB_EMULATOR_HOST=127.0.0.1:1 to answer within 15 s, got UNAVAILABLE\n"


def test_an_address_that_does_not_answer(refused, monkeypatch):
    monkeypatch.setattr(pubsub_access, "PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        assert refused(host).startswith(f" needs PUBSUB_EMULATOR_HOST={host} to answer within 1 s, got ")


def test_a_name_that_is_not_there(refused):
    with PubsubServer() as server:
        sentence = f" must exist, got a name that PUBSUB_EMULATOR_HOST={server.address} does not know\n"
        assert refused(server.address) == sentence
