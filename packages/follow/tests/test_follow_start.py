"""``uldp estimate --follow`` starts without Beam, whichever source it follows, and says what it cannot do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packages.follow.tests.support.spools import Followed
from packages.follow.tests.support.two_steps import PROGRAM
from tests.support.messages_cases import KRR

ROOT = Path(__file__).parents[3]


def _end_of(words: list[str]) -> tuple[str, str]:
    """Exit code of a process with a command line, and whether it imported Beam; and what it said."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1], done.stderr


def test_a_spool_is_followed_without_an_engine(tmp_path: Path) -> None:
    """From the command line to the rows, with groups, late rows and stored counts."""
    followed = Followed(tmp_path, of=(KRR,))
    followed.add_file()
    end, said = _end_of(followed.argv())
    assert end == "0 False", said
    assert "estimate: stopped: 120 received = 60 accepted + 60 rejected" in said
    assert {row["status"] for row in followed.rows("estimates")} == {"ok"}


def test_a_topic_is_looked_at_without_an_engine(tmp_path: Path) -> None:
    followed = Followed(tmp_path, of=(KRR,))
    topic = ["--kafka_topic", "t", "--bootstrap_servers", "127.0.0.1:1"]
    words = [*topic, *followed.argv()[2:]]
    end, said = _end_of(words)
    assert end == "2 False", said
    assert "estimate: brokers of --bootstrap_servers must answer" in said
