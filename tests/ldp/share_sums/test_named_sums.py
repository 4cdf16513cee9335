"""Names, values and weights of sums, and what is no sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.refusals.jobs.sums import REFUSED
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.share_sums import NamedSum, read_sums
from uldp_transforms.ldp.share_sums.named_sum import weights_of

VALUES = ("single", "married", "Married", "divorced-1", "divorced-2", "wid*wed")


@pytest.mark.parametrize(("call", "sentence"), REFUSED, ids=[sentence[:70] for _, sentence in REFUSED])
def test_refusals(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(SpecError) as error:
        call()
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        (["married", "single"], [1, 1, 0, 0, 0, 0]),
        ({"match": "divorced-*"}, [0, 0, 0, 1, 1, 0]),
        ({"match": "?arried"}, [0, 1, 1, 0, 0, 0]),
        ({"match": "[!a-z]*"}, [0, 0, 1, 0, 0, 0]),
        ({"match": "wid[*]wed"}, [0, 0, 0, 0, 0, 1]),
        ({"match": "*"}, [1, 1, 1, 1, 1, 1]),
        ({"weights": {"single": 3, "Married": -7.5, "married": 0}}, [3, 0, -7.5, 0, 0, 0]),
        ({"match": "div"}, None),
        (["single", "Single"], None),
        ({"weights": {"single": 3, "other": 0}}, None),
    ],
)
def test_each_form_has_its_weights(plain: Any, expected: list[float] | None) -> None:
    """A pattern is about the whole value; a sum without all its values is none."""
    [one] = read_sums({"sum": plain})
    found = one.weights_of(VALUES)
    assert found is None if expected is None else found.tolist() == expected
    assert one.is_share == ("weights" not in plain)
    assert NamedSum.of("sum", one.to_json()) == one


def test_a_collection_has_the_sums_of_which_it_has_all_values() -> None:
    sums = read_sums({"both": ["single", "other"], "two": ["single", "married"], "all": {"match": "*"}})
    found, weights = weights_of(sums, VALUES)
    assert [one.name for one in found] == ["two", "all"]
    np.testing.assert_array_equal(weights, [[1, 1, 0, 0, 0, 0], [1] * 6])
    assert weights_of(sums[:1], VALUES)[1].shape == (0, 6)
