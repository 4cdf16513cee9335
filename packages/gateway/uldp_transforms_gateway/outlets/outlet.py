"""Base class of outlets for accepted reports: the option that selects one, and when a message is delivered."""

from __future__ import annotations

import abc
import argparse
from typing import Any, ClassVar, Protocol

from uldp_transforms.jobs import cli
from uldp_transforms_gateway.apps.uses import Use


class Undelivered(Exception):
    """A message was probably not delivered; the text gives the reason, not the content."""


def reason_of(error: Exception) -> str:
    """Why something failed: what the system says, else the kind of the fault, whose text could contain data."""
    return getattr(error, "strerror", None) or type(error).__name__


class Delivery(Protocol):
    """Receiver of packed messages: an outlet, or a spool before one."""

    async def start(self) -> None:
        """Called once, in the loop that delivers."""

    async def deliver(self, message: bytes, *uses: Use) -> None:
        """Return when the message is there for good, and the uses of its tokens are recorded; raises Undelivered."""

    async def close(self) -> None:
        """Called once, when nothing is delivered any more."""


class Outlet(abc.ABC):
    """Destination of packed messages. To add one, write a file with a subclass and a line in ``OUTLETS``."""

    option: ClassVar[str]
    """Option that selects the outlet, such as ``--topic``."""
    help: ClassVar[str]
    """Help text of the option."""
    kind: ClassVar[Any] = str
    """argparse type of the option."""
    own_options: ClassVar[cli.Options] = {}
    """Further options that only this outlet takes, with their arguments for argparse; their default is None."""

    @classmethod
    @abc.abstractmethod
    def of(cls, args: argparse.Namespace) -> Outlet:
        """The outlet that a command line selects; raises SpecError for options that contradict each other."""

    @abc.abstractmethod
    def check(self) -> None:
        """Report problems before the first request, within 20 s; raises SpecError."""

    @abc.abstractmethod
    async def deliver(self, message: bytes) -> None:
        """Return when the message is there for good; raises Undelivered."""

    async def start(self) -> None:  # noqa: B027  # most have nothing to do
        """Called once, in the loop that delivers."""

    async def close(self) -> None:  # noqa: B027  # most have nothing to do
        """Called once, when nothing is delivered any more."""
