"""Google's client libraries (extra ``gcp``), which Dataflow, Pub/Sub, BigQuery and Cloud Storage need."""

from __future__ import annotations

import importlib.util

from uldp_transforms.ldp.errors import SpecError


def has_google_clients() -> bool:
    """Whether the extra is installed."""
    try:
        return importlib.util.find_spec("google.auth") is not None
    except ModuleNotFoundError:  # no Google package is installed
        return False


def require_google_clients(what: str) -> None:
    """Check that the extra is installed.

    Args:
        what: the option or program that needs the extra.

    Raises:
        SpecError: if it is not installed.
    """
    if not has_google_clients():
        raise SpecError(f"{what} needs Google's client libraries; install the extra 'gcp': pip install '.[gcp]'")
