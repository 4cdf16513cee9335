"""Many small cases in one test: collecting, starting and reporting a test costs more than most cases do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def together(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Callable[[Any], str] = str,
    by: Callable[[Any], str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test to run all its cases and to fail with the ids of all that fail.

    ``names``, ``cases`` and ``ids`` are those of ``pytest.mark.parametrize``. With ``by`` there is one test for each
    group of cases (default: one test for all). Fixtures of function scope are shared by the cases of a group. A case
    that skips fails, because nobody would see that it was skipped; leave such cases out of the list.
    """
    arguments = (names,) if isinstance(names, str) else names
    groups: dict[str, dict[str, tuple[Any, ...]]] = {}
    for case in cases:
        values = tuple(getattr(case, "values", (case,) if isinstance(names, str) else case))
        subject = values[0] if len(values) == 1 else values
        cases_of_group = groups.setdefault(by(subject) if by else "", {})
        assert not getattr(case, "marks", ()), f"marks of a single case would be lost: {case}"
        name = getattr(case, "id", None) if hasattr(case, "marks") else None
        cases_of_group[f"{name or ids(subject)} #{len(cases_of_group)}"] = values

    chosen = f"group_of_{arguments[0]}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_all(**others: Any) -> None:
            group = others.pop(chosen, "")
            failed: dict[str, BaseException] = {}
            for name, values in groups[group].items():
                try:
                    test(**dict(zip(arguments, values, strict=True)), **others)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failed[name] = error
            if failed:
                shown = "".join(f"\n  {name}: {error!r:.300}" for name, error in failed.items())
                raise AssertionError(f"{len(failed)} of {len(groups[group])} cases fail:{shown}") from next(
                    iter(failed.values())
                )

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        if by:
            left.insert(0, inspect.Parameter(chosen, inspect.Parameter.POSITIONAL_OR_KEYWORD))
        run_all.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # pytest reads it
        return pytest.mark.parametrize(chosen, list(groups))(run_all) if by else run_all

    return decorate
