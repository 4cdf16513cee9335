"""Beam looks up the same signatures, states and options hundreds of times per pipeline: half of a small one's time.

``remember`` keeps them for the processes that run tests. Programs that tests start run Beam as it is.
"""

from __future__ import annotations

import bz2
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from apache_beam.internal import cloudpickle_pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct import transform_evaluator
from apache_beam.transforms import core, userstate

_Arguments = tuple[list[str], list[Any]]
_Specs = tuple[set[userstate.StateSpec], set[userstate.TimerSpec]]


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


def remembering_specs(look_up: Callable[[core.DoFn], _Specs]) -> Callable[[core.DoFn], _Specs]:
    """``get_dofn_specs`` that looks through the methods of an object once."""
    known: weakref.WeakKeyDictionary[core.DoFn, _Specs] = weakref.WeakKeyDictionary()

    @functools.wraps(look_up)
    def specs(dofn: core.DoFn) -> _Specs:
        if dofn not in known:
            known[dofn] = look_up(dofn)
        states, timers = known[dofn]
        return set(states), set(timers)

    return specs


def remembering_good_functions(mixes: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """``_check_fn_use_yield_and_return`` that reads the source of a method once, unless it must warn of it."""
    good: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()

    @functools.wraps(mixes)
    def check(fn: Any) -> bool:
        function = getattr(fn, "__func__", None)
        if function in good:
            return False
        answer = mixes(fn)
        if not answer and isinstance(function, types.FunctionType):
            good.add(function)
        return answer

    return check


def compress_lightly(data: bytes, compresslevel: int = 9) -> bytes:
    """``bz2.compress`` that clears 100 kB of memory for each pickled step, rather than 900 kB."""
    return bz2.compress(data, 1)


def remember() -> None:
    """Change Beam in this process."""
    core.get_function_args_defaults = remembering_arguments(core.get_function_args_defaults)
    core._check_fn_use_yield_and_return = remembering_good_functions(core._check_fn_use_yield_and_return)
    PipelineOptions.view_as = remembering_views(PipelineOptions.view_as)  # type: ignore[method-assign]
    userstate.get_dofn_specs = remembering_specs(userstate.get_dofn_specs)
    transform_evaluator.get_dofn_specs = userstate.get_dofn_specs
    cloudpickle_pickler.bz2 = types.SimpleNamespace(compress=compress_lightly, decompress=bz2.decompress)
