"""Fuzzing of the gateway's parser of HTTP: its corpus holds, and a body never becomes a request."""

from __future__ import annotations

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from packages.gateway.tests.support import http_heads
from packages.gateway.tests.support.http_heads import CORPUS, TARGETS
from tests.fuzz.guided import LONGEST, read_corpus, steps_of
from uldp_transforms_gateway import http_offers


def test_nothing_of_the_corpus_escapes() -> None:
    corpus = read_corpus("heads", CORPUS)
    assert len(corpus) >= 5
    assert len(set(corpus)) == len(corpus)
    for content in corpus:
        assert len(content) <= LONGEST
        assert steps_of(TARGETS["heads"], content)


def test_a_body_that_becomes_a_request_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As uvicorn alone reads it: a request that offers HTTP/2 ends after its head, and its body is the next one."""
    for name in ("data_received", "on_headers_complete", "on_message_complete"):
        monkeypatch.setattr(http_offers.IgnoresOffers, name, getattr(HttpToolsProtocol, name))
    offered = http_heads.first_heads()[1]
    head = offered.index(b"\r\n\r\n") + 4
    requests, _ = http_heads.requests_in(offered[:head], offered[head:])
    assert [request.url for request in requests] != [b"/reports", b"/healthz"]
    monkeypatch.undo()
    requests, is_broken = http_heads.requests_in(offered[:head], offered[head:])
    assert [request.url for request in requests] == [b"/reports", b"/healthz"] and not is_broken
