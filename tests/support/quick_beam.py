"""Beam looks up the same signatures and options hundreds of times per pipeline: a third of a small pipeline's time.

``remember`` keeps them for the processes that run tests. Programs that tests start run Beam as it is.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

_Arguments = tuple[list[str], list[Any]]


def remembering_arguments(look_up: Callable[[Any], _Arguments]) -> Callable[[Any], _Arguments]:
    """``get_function_args_defaults`` that looks up the function of a method once."""
    known: weakref.WeakKeyDictionary[types.FunctionType, _Arguments] = weakref.WeakKeyDictionary()

    @functools.wraps(look_up)
    def arguments(f: Any) -> _Arguments:
        function = getattr(f, "__func__", None)
        if not isinstance(f, types.MethodType) or not isinstance(function, types.FunctionType):
            return look_up(f)
        if function not in known:
            known[function] = look_up(f)
        names, defaults = known[function]
        return list(names), list(defaults)

    return arguments


def remembering_views(make: Callable[[Any, type], Any]) -> Callable[[Any, type], Any]:
    """``view_as`` that makes one view of each class: all views of options share their values."""
    known: weakref.WeakKeyDictionary[PipelineOptions, dict[type, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(make)
    def view_as(self: Any, cls: type) -> Any:
        views = known.setdefault(self, {})
        if cls not in views:
            views[cls] = make(self, cls)
        return views[cls]

    return view_as


def remember() -> None:
    """Change Beam in this process."""
    core.get_function_args_defaults = remembering_arguments(core.get_function_args_defaults)
    PipelineOptions.view_as = remembering_views(PipelineOptions.view_as)  # type: ignore[method-assign]
