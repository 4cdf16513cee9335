"""Tokens that an app's server signs: each sends one message, which may come again, and none is kept."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from packages.gateway.tests.support.gateways import Running, gateway
from packages.gateway.tests.support.tokens import KEY, OTHER, VECTOR, Clock, of, sent, sign
from tests.support.messages_cases import packed, single
from uldp_transforms_gateway.apps.app_keys import Key, Tokens
from uldp_transforms_gateway.apps.signed_tokens import LONGEST, Token, UsedTokens
from uldp_transforms_gateway.refusals import Refused


def with_id(name: str, expires: int) -> Token:
    """A token with an id of its own; its code is not looked at."""
    return of(f"uldp1.{expires}.{name.rjust(22, 'x')}.{'A' * 43}")


# ---------------------------------------------------------------------- by themselves


def test_a_token_is_what_the_page_says() -> None:
    token = of(VECTOR)
    assert (token.expires, token.id) == (1_800_000_000, bytes(range(16)))
    assert token.is_signed_with(KEY)
    assert not token.is_signed_with(OTHER)
    drawn = of(sign(KEY))
    assert drawn.is_signed_with(KEY)
    assert 3600 <= drawn.expires - time.time() + 60 < 3720 and drawn.expires % 60 == 0
    assert sign(KEY) != sign(KEY)


@pytest.mark.parametrize(
    "text",
    [
        *("", "uldp1", KEY, VECTOR[:-1], f"{VECTOR}A", f"{VECTOR}=", f" {VECTOR}", VECTOR.replace("uldp1", "uldp2")),
        *(VECTOR.replace("1800000000", time) for time in ("", "-1", "1e9", "9" * 12, "٣", "1_000")),
        VECTOR.replace(".AAEC", ".AA+C"),
    ],
)
def test_other_texts_are_no_tokens(text: str) -> None:
    assert Token.parse(text) is None


@pytest.mark.parametrize("place", range(len("uldp1."), len(VECTOR)))
def test_a_token_that_was_changed_is_not_signed(place: int) -> None:
    for other in "0A":
        changed = VECTOR[:place] + other + VECTOR[place + 1 :]
        token = Token.parse(changed)
        assert changed == VECTOR or token is None or not token.is_signed_with(KEY)


def test_a_token_sends_one_message_until_it_expires() -> None:
    clock = Clock()
    used, token = UsedTokens(clock=clock), of(VECTOR)
    used.check(token)
    for _ in range(3):
        used.use(token, b"message")
    with pytest.raises(Refused, match=r"^token_used$"):
        used.use(token, b"another")
    clock.now = token.expires - 0.001
    used.check(token)
    with pytest.raises(Refused, match=r"^token_used$"):
        used.use(token, b"another")
    clock.now = token.expires
    with pytest.raises(Refused, match=r"^token_expired$"):
        used.check(token)


@pytest.mark.parametrize("late", [0, 1, 59, 61, 3600])
def test_a_token_that_expires_while_a_body_comes_sends_no_second_message(late: int) -> None:
    clock = Clock()
    used, token = UsedTokens(clock=clock), of(VECTOR)
    used.check(token)  # the heads of two requests
    used.check(token)
    used.use(token, b"message")
    clock.now = token.expires + late
    for message in (b"another", b"message"):
        with pytest.raises(Refused, match=r"^token_expired$"):
            used.use(token, message)


def test_a_token_is_valid_for_a_day_at_most() -> None:
    clock = Clock()
    clock.now = 1_800_000_000 - LONGEST
    UsedTokens(clock=clock).check(of(VECTOR))
    clock.now -= 1
    with pytest.raises(Refused, match=r"^token$"):
        UsedTokens(clock=clock).check(of(VECTOR))


def test_only_so_many_tokens_are_remembered_and_expired_ones_make_room() -> None:
    assert UsedTokens()._most == 1_000_000
    clock = Clock()
    used = UsedTokens(most=10, clock=clock, elapsed=clock)
    tokens = [of(re.sub("1800000000", str(1_800_000_000 + 60 * number), VECTOR)) for number in range(13)]
    for token in tokens[:10]:
        used.use(token, b"message")
    with pytest.raises(Refused, match=r"^busy$") as caught:
        used.use(tokens[10], b"message")
    assert caught.value.status == 429
    used.use(tokens[3], b"message")  # one that is known may always come again
    clock.now = 1_800_000_120  # the first two have expired; the third does now
    used.use(tokens[10], b"message")
    used.use(tokens[11], b"message")
    with pytest.raises(Refused, match=r"^busy$"):
        used.use(tokens[12], b"message")


@pytest.mark.parametrize("others", [0, 5])
def test_a_clock_that_is_set_ahead_and_back_forgets_no_token(others: int) -> None:
    """Its token is valid again afterwards. What expired by both clocks is forgotten."""
    clock, elapsed = Clock(), Clock()
    used, token = UsedTokens(clock=clock, elapsed=elapsed), of(VECTOR)
    used.use(token, b"message")
    for turn, ahead in enumerate((7200, 0, 86_400, 0, -3600, 0)):
        clock.now = Clock.now + ahead
        for number in range(others):
            used.use(with_id(f"{turn}{number}", int(clock.now) + 60 * (number + 1)), b"message")
    elapsed.now += 20
    clock.now = Clock.now + 20
    with pytest.raises(Refused, match=r"^token_used$"):
        used.use(token, b"another")
    elapsed.now += 10**6
    clock.now += 10**6
    used.use(with_id("last", int(clock.now) + 60), b"message")
    assert used._number == 1
    assert len(used._slots) == len(used._until) == 1


def test_a_key_is_no_token_and_a_token_is_no_key() -> None:
    keys = [Key(KEY, "app")]
    with pytest.raises(Refused, match=r"^token$"):
        Tokens(keys, used=UsedTokens()).check(f"Bearer {KEY}")
    with pytest.raises(Refused, match=r"^token$"):
        Tokens(keys).check(f"Bearer {sign(KEY)}")
    with pytest.raises(Refused, match=r"^token$"):
        Tokens(keys, used=UsedTokens()).check(f"Bearer {sign(OTHER)}")


# ---------------------------------------------------------------------- at a running gateway


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "keys").write_text(f"{KEY} app\n{OTHER} other\n", encoding="utf-8")
    options = [f"--spool={folder / 'spool'}", "--pack_every=20ms", "--signed_tokens"]
    with gateway([*options, f"--token_file={folder / 'keys'}"], folder) as found:
        yield found


def test_a_message_may_come_again_and_no_other_one(running: Running, tmp_path: Path) -> None:
    token, message, another = sign(KEY), single(), single()[:-1]
    assert sent(running, token, message) == (202, {"spooled": 1})
    assert sent(running, token, message) == (202, {"spooled": 1}), "a client that got no answer sends it again"
    assert sent(running, token, another) == (401, {"reason": "token_used"})
    assert sent(running, sign(OTHER), message) == (202, {"spooled": 1})
    assert sent(running, sign(KEY, -120), message) == (401, {"reason": "token_expired"})
    assert sent(running, sign(KEY, 2 * LONGEST), message) == (401, {"reason": "token"})
    assert sent(running, KEY, message) == (401, {"reason": "token"})
    assert sent(running, sign(OTHER), packed()) == (413, {"reason": "too_large"}), "a batch is more than one report"
    text = running.ask("GET", "/metrics").content
    assert 'uldp_gateway_app_requests_total{app="app"} 3.0' in text
    assert 'uldp_gateway_app_requests_total{app="other"} 2.0' in text
    running.process.terminate()
    running.process.wait(600)
    kept = [path.read_bytes() for path in running.log.parent.rglob("*") if path.is_file() and path.name != "keys"]
    for part in (*token.split(".")[2:], token.split(".")[1], KEY):
        assert part not in json.dumps(text)
        assert not any(part.encode() in content for content in kept)
