"""The contract of a CombineFn: any cut into accumulators, in any order, sent between workers or not, is one sum."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uldp_transforms.beam.transforms.count_reports import SumCountsFn
from uldp_transforms.beam.transforms.ledger import SumByReasonFn
from uldp_transforms.collector.ledger_entries import ACCEPTED, DUPLICATES, RECEIVED
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.reasons import Reason

SHAPE = (2, 3)
BINS = [RECEIVED, ACCEPTED, DUPLICATES, *(reason.code for reason in Reason if reason is not Reason.ACCEPTED)]


def random_counts(seed: int) -> CohortCounts:
    """Counts with many zeros, small numbers, now and then one that fills 8 bytes, and reports that are taken back."""
    rng = np.random.default_rng(seed)
    largest = (1, 3, 300, 1 << 40)[seed % 4]
    numbers = rng.integers(0, largest, (SHAPE[0], 1 + SHAPE[1]), endpoint=True) * rng.integers(-1, 2, (SHAPE[0], 1))
    return CohortCounts(numbers[:, 0], numbers[:, 1:])


def sum_of_counts(inputs: list[CohortCounts]) -> CohortCounts | None:
    return sum(inputs[1:], inputs[0]) if inputs else None


def sum_by_reason(inputs: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(other.get(name, 0) for other in inputs) for element in inputs for name in element}


COMBINE_FNS = [
    pytest.param(SumCountsFn(), st.integers(0, 999).map(random_counts), sum_of_counts, id="counts"),
    pytest.param(
        SumByReasonFn(),
        st.dictionaries(st.sampled_from(BINS), st.integers(-(1 << 40), 1 << 40), max_size=3),
        sum_by_reason,
        id="reasons",
    ),
]

contract = pytest.mark.parametrize(("combine_fn", "inputs", "expected"), COMBINE_FNS)


def sent(combine_fn: Any, accumulator: Any) -> Any:
    """An accumulator as another worker gets it."""
    coder = combine_fn.get_accumulator_coder()
    encoded = coder.encode(accumulator)
    assert coder.encode(coder.decode(encoded)) == encoded
    return coder.decode(encoded)


@contract
@settings(max_examples=60)
@given(data=st.data())
def test_any_cut_in_any_order_is_one_sum(combine_fn: Any, inputs: Any, expected: Any, data: st.DataObject) -> None:
    elements = data.draw(st.lists(inputs, max_size=6))
    copies = copy.deepcopy(elements)
    parts = data.draw(st.lists(st.lists(st.sampled_from(range(6)), unique=True), max_size=4))
    owner = {index: number for number, part in enumerate(parts) for index in part}
    accumulators = [combine_fn.create_accumulator() for _ in range(len(parts) + 1)]  # some of them stay empty
    for index in data.draw(st.permutations(range(len(elements)))):
        number = owner.get(index, len(parts))
        accumulators[number] = combine_fn.add_input(accumulators[number], elements[index])
    accumulators = [
        sent(combine_fn, combine_fn.compact(accumulator)) if data.draw(st.booleans()) else accumulator
        for accumulator in data.draw(st.permutations(accumulators))
    ]
    cut = data.draw(st.integers(0, len(accumulators)))
    first = combine_fn.merge_accumulators(iter(accumulators[:cut]))
    merged = combine_fn.merge_accumulators([first, *accumulators[cut:]])
    assert combine_fn.extract_output(merged) == expected(elements)
    assert combine_fn.apply(elements) == expected(elements)
    assert elements == copies, "a CombineFn may not change its inputs"


@contract
def test_empty_accumulators_are_neutral(combine_fn: Any, inputs: Any, expected: Any) -> None:
    empty = combine_fn.create_accumulator
    assert combine_fn.merge_accumulators([]) == empty()
    assert combine_fn.merge_accumulators([empty(), sent(combine_fn, empty()), empty()]) == empty()
    assert combine_fn.extract_output(empty()) == expected([])


@contract
@settings(max_examples=30)
@given(data=st.data())
def test_accumulators_share_no_state(combine_fn: Any, inputs: Any, expected: Any, data: st.DataObject) -> None:
    """Beam may go on with an accumulator that was merged into another one, as panes that accumulate do."""
    first, second, third = (data.draw(inputs) for _ in range(3))
    one = combine_fn.add_input(combine_fn.create_accumulator(), first)
    other = combine_fn.add_input(combine_fn.create_accumulator(), second)
    merged = combine_fn.merge_accumulators([combine_fn.create_accumulator(), one, other])
    more = combine_fn.add_input(other, third)
    assert combine_fn.extract_output(merged) == expected([first, second])
    assert combine_fn.extract_output(more) == expected([second, third])
    assert combine_fn.extract_output(combine_fn.add_input(combine_fn.create_accumulator(), first)) == expected([first])


def test_counts_of_different_shapes_do_not_mix() -> None:
    with pytest.raises(ValueError, match="can be added only if their shapes are equal"):
        SumCountsFn().merge_accumulators([RunningSum(CohortCounts.empty(1, 2)), RunningSum(CohortCounts.empty(2, 1))])
