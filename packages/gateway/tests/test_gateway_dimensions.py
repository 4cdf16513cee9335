"""A dimension that the gateway sets, from a request with a header to rows by group."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from packages.gateway.tests.support.gateways import gateway
from tests.support.ldp.dimensions import ON_THE_WAY
from tests.support.live import PATIENCE
from uldp_transforms.jobs import estimate
from uldp_transforms.messages import wire


def with_trailer(address: str, body: bytes, head: bytes, trailer: bytes) -> bytes:
    """The answer to a request in chunks with a header (or none) and a trailer, all sent at once."""
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), PATIENCE) as connection:
        lines = b"POST /reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" + head
        connection.sendall(lines + b"\r\n%x\r\n%s\r\n0\r\n%s\r\n\r\n" % (len(body), body, trailer))
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_the_country_of_a_request_is_that_of_its_reports(tmp_path: Path) -> None:
    """It is in the spool and in the rows. A sender that states a country itself gets an answer that says so.
    A trailer behind the body states none.
    """
    rng = np.random.default_rng(29)
    spool, options = tmp_path / "spool", ["--dimension", "country=header:X-Country", "--pack_every=20ms"]

    def reports(number: int) -> bytes:
        arms = ["new", "control"] * (number // 2)
        return wire.encode_batch(ON_THE_WAY.perturb(["a"] * number, rng, [0] * number, {"arm": arms}))

    with gateway(["--spool", str(spool), *options], tmp_path, ON_THE_WAY) as found:
        assert found.send(reports(40), X_Country="DE \t").content == {"spooled": 40}, "blanks are no part of it"
        assert found.send(reports(20), x_country=" FR  ").status == 202
        assert found.send(reports(10), X_Country="Atlantis").status == 202
        assert found.send(reports(6), Country="DE").status == 202
        forged = ON_THE_WAY.perturb(["a"], rng, [0], {"arm": ["new"]})
        forged.cohorts[:] = 1  # DE, new
        of_trailers = ON_THE_WAY.perturb(["a"] * 2, rng, [0] * 2, {"arm": ["new"] * 2})
        for report, country in zip(wire.encode_reports(of_trailers), (b"", b"X-Country: FR\r\n")):
            assert b"spooled" in with_trailer(found.address, report, country, b"X-Country: DE")
        refused = found.send(wire.encode_reports(forged)[0], X_Country="FR")
        assert (refused.status, refused.content) == (422, {"reason": "cohort_range", "refused": {"cohort_range": 1}})
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(PATIENCE) == 0
    given = ["--collection", str(tmp_path / "C.json"), "--input", str(spool / "*.avro"), "--by", "country,arm"]
    given += ["--min_reports", "1"]
    assert estimate.main([*given, "--output", str(tmp_path / "out")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "estimates.jsonl").read_text().splitlines()]
    assert {row["group"]: row["num_reports"] for row in rows} == {
        "": 78,
        "country=DE,arm=control": 20,
        "country=DE,arm=new": 20,
        "country=FR,arm=control": 10,
        "country=FR,arm=new": 11,
        "country=other,arm=control": 8,
        "country=other,arm=new": 9,
    }
