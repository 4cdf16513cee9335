"""Specifications from JSON in which any place holds something else: the project's own error, or a specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.messages_cases import KRR
from tests.support.wrong_json import ODD, spoiled
from uldp_transforms import JobSpec
from uldp_transforms.ldp import SpecError


@pytest.mark.parametrize("source", [odd for odd in ODD if not isinstance(odd, (str, dict))], ids=repr)
def test_no_specification_is_anything_else_than_an_object(source: Any) -> None:
    with pytest.raises(SpecError, match=r"^JobSpec must be a JSON object, got "):
        JobSpec.from_json(source)


def test_any_place_with_something_else_is_refused_or_read() -> None:
    """A text in place of a collection or of candidates is the path of a file."""
    spec = json.loads(json.dumps(JobSpec.of(collections=[KRR], window="1h", estimator="eb").to_json()))
    for place, other in spoiled(spec):
        try:
            JobSpec.from_json(other)
        except SpecError:
            pass
        except OSError as error:
            assert str(error.filename) in ("", "x"), place
        except Exception as error:
            pytest.fail(f"{place}: {error!r}")
    with pytest.raises(SpecError, match=r"^JobSpec needs the key 'collections', got 1$"):
        JobSpec.from_json({1: 2})  # type: ignore[dict-item]  # what is refused
