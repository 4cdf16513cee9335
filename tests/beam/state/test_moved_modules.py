"""What the state of a running stream may have pickled is found after an upgrade."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

from uldp_transforms import JobSpec
from uldp_transforms.beam.moved_modules import MOVED
from uldp_transforms.beam.transforms.ledger import SumByReasonFn
from uldp_transforms.collector.ledger_entries import LedgerEntry


@pytest.mark.parametrize("former", MOVED)
def test_a_former_name_is_the_module_of_today(former: str) -> None:
    today = importlib.import_module(MOVED[former])
    assert importlib.import_module(former) is today
    assert today.__spec__ is not None and today.__spec__.name == today.__name__ == MOVED[former]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("beam.spec.job_spec JobSpec", JobSpec),
        ("beam.accounts.ledger SumByReasonFn", SumByReasonFn),
        ("beam.accounts.ledger LedgerEntry", LedgerEntry),
    ],
)
def test_a_pickled_name_is_found_by_a_new_process(name: str, found: type) -> None:
    module, _, attribute = name.partition(" ")
    pickled = f"culdp_transforms.{module}\n{attribute}\n.".encode()
    assert pickle.loads(pickled) is found
    program = f"import pickle; print(pickle.loads({pickled!r}).__module__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found.__module__


def test_no_other_name_is_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("uldp_transforms.beam.accounts.nothing")
