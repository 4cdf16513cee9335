"""Google's clients, which the extra ``gcp`` installs: Dataflow, Pub/Sub, BigQuery and Cloud Storage need them."""

from __future__ import annotations

import importlib.util

from uldp_transforms.ldp.errors import SpecError


def has_google_clients() -> bool:
    """Whether the extra is installed."""
    try:
        return importlib.util.find_spec("google.auth") is not None
    except ModuleNotFoundError:  # there is nothing of Google's at all
        return False


def require_google_clients(what: str) -> None:
    """Check that the extra is installed.

    Args:
        what: needs it: an option or a program.

    Raises:
        SpecError: if it is not.
    """
    if not has_google_clients():
        raise SpecError(f"{what} needs Google's clients, of the extra 'gcp': pip install '.[gcp]'")
