"""Tokens that the server of an app signs, made as the page of the gateway says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema

from packages.gateway.tests.support.gateways import Answer, Running
from tests.project.documents import DOCS, blocks
from uldp_transforms_gateway.apps.signed_tokens import Token
from uldp_transforms_gateway.openapi import document

KEY, OTHER = "key-of-the-app-0123456789", "key-of-other-app-0123456789"
MAC = "G7tsQL1qhUQ9HCCuCCpm3j9YoFgCAlYYI5OESsWVePw"  # openssl dgst -sha256 -hmac KEY
VECTOR = f"uldp1.1800000000.AAECAwQFBgcICQoLDA0ODw.{MAC}"


def recipe() -> Callable[..., str]:
    """The function of the page."""
    [text] = [block.code for block in blocks(DOCS / "gateway.md", "python") if "def token(" in block.code]
    names: dict[str, Any] = {}
    exec(text, names)  # our own page
    token: Callable[..., str] = names["token"]
    return token


sign = recipe()


class Clock:
    """Seconds since 1970 that a test sets."""

    now = 1_800_000_000.0 - 30

    def __call__(self) -> float:
        return self.now


def of(text: str) -> Token:
    found = Token.parse(text)
    assert found is not None
    return found


def sent(running: Running, token: str, message: bytes) -> tuple[int, Any]:
    """Status and content of the answer, which is one of the document."""
    answer: Answer = running.send(message, Authorization=f"Bearer {token}")
    described = document()["paths"]["/reports"]["post"]["responses"][str(answer.status)]
    jsonschema.validate(answer.content, described["content"]["application/json"]["schema"])
    assert answer.status != 401 or answer.headers["www-authenticate"] == "Bearer"
    return answer.status, answer.content
