"""Faults that were once made, or might be, and that the tests of the default suite must find each time.

``tests.campaigns.mutants`` plants them before the ones it draws; ``tests/project/test_planted.py`` proves that each is
still to be had, its old text standing in its file exactly once, and that every room has some.
"""

from __future__ import annotations

from tests.campaigns.planted.commands import COMMANDS
from tests.campaigns.planted.estimates import ESTIMATES
from tests.campaigns.planted.mechanisms import MECHANISMS
from tests.campaigns.planted.messages_and_rows import MESSAGES_AND_ROWS
from tests.campaigns.planted.pages import PAGES
from tests.campaigns.planted.pipeline import PIPELINE
from tests.campaigns.planted.streams import STREAMS

PLANTED = (
    *MECHANISMS,
    *ESTIMATES,
    *MESSAGES_AND_ROWS,
    *PIPELINE,
    *COMMANDS,
    *STREAMS,
    *PAGES,
)
