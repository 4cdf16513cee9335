"""Beam looks up the same signatures, states and options hundreds of times per pipeline: half of a small one's time.

``remember`` keeps them for the processes that run tests. Programs that tests start run Beam as it is.
"""

from __future__ import annotations

import bz2
import copy
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from apache_beam.internal import cloudpickle_pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct import transform_evaluator
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, userstate
from apache_beam.typehints import decorators, schemas, trivial_inference

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
    """``view_as`` that makes one view of each class, as all views of options share their values, and parses the same
    command line once for each class.
    """
    known: weakref.WeakKeyDictionary[PipelineOptions, dict[type, Any]] = weakref.WeakKeyDictionary()
    parsed: dict[tuple[type, tuple[str, ...]], Any] = {}

    def view_of(self: Any, cls: Any) -> Any:
        asked = cls, tuple(sys.argv[1:] if self._flags is None else self._flags)
        if asked not in parsed:
            parsed[asked] = make(PipelineOptions(asked[1]), cls)._visible_options
        view = cls.__new__(cls)
        view._flags, view._visible_options = self._flags, copy.deepcopy(parsed[asked])
        for name in view._visible_option_list():
            self._all_options.setdefault(name, getattr(view._visible_options, name))
        view._all_options = self._all_options
        return view

    @functools.wraps(make)
    def view_as(self: Any, cls: type) -> Any:
        views = known.setdefault(self, {})
        if cls not in views:
            views[cls] = view_of(self, cls)
        return views[cls]

    return view_as


def remembering_specs(look_up: Callable[[core.DoFn], _Specs]) -> Callable[[core.DoFn], _Specs]:
    """``get_dofn_specs`` that looks through the methods of a class once, and of objects with methods of their own or of
    another step each time."""
    known: weakref.WeakKeyDictionary[type, _Specs] = weakref.WeakKeyDictionary()

    @functools.wraps(look_up)
    def specs(dofn: core.DoFn) -> _Specs:
        if any(isinstance(value, (types.MethodType, core.DoFn)) for value in vars(dofn).values()):
            return look_up(dofn)
        if type(dofn) not in known:
            known[type(dofn)] = look_up(dofn)
        states, timers = known[type(dofn)]
        return set(states), set(timers)

    return specs


def remembering_good_functions(mixes: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """``_check_fn_use_yield_and_return`` that reads the source of a function once, unless it must warn of it."""
    good: weakref.WeakSet[types.CodeType] = weakref.WeakSet()

    @functools.wraps(mixes)
    def check(fn: Any) -> bool:
        code = getattr(getattr(fn, "__func__", fn), "__code__", None)
        if code in good:
            return False
        answer = mixes(fn)
        if not answer and isinstance(code, types.CodeType):
            good.add(code)
        return answer

    return check


def knowing_row_types(make: Callable[[Any, Any], type]) -> Callable[[Any, Any], type]:
    """``SchemaTranslation.named_tuple_from_schema`` that looks at the fields of a schema only if it has no type yet."""

    @functools.wraps(make)
    def row_type(self: Any, schema: Any) -> type:
        known = self.schema_registry.by_id.get(schema.id)
        return known[0] if known else make(self, schema)

    return row_type


def remembering_hints(look_up: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``IOTypeHints.from_callable`` that reads the annotations of a function, or of a method of an object, once."""
    known: weakref.WeakKeyDictionary[types.FunctionType, dict[bool, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(look_up)
    def hints(fn: Any) -> Any:
        bound = isinstance(fn, types.MethodType)
        function = fn.__func__ if bound else fn
        if not isinstance(function, types.FunctionType):
            return look_up(fn)
        answers = known.setdefault(function, {})
        if bound not in answers:
            answers[bound] = look_up(fn)
        return answers[bound]

    return hints


def remembering_signatures(look_up: Callable[[Any], inspect.Signature]) -> Callable[[Any], inspect.Signature]:
    """``get_signature`` that looks at the parameters of a function, or of a method of an object, once."""
    known: weakref.WeakKeyDictionary[types.FunctionType, dict[bool, inspect.Signature]] = weakref.WeakKeyDictionary()

    @functools.wraps(look_up)
    def signature(func: Any) -> inspect.Signature:
        bound = isinstance(func, types.MethodType)
        function = func.__func__ if bound else func
        if not isinstance(function, types.FunctionType):
            return look_up(func)
        answers = known.setdefault(function, {})
        if bound not in answers:
            answers[bound] = look_up(func)
        return answers[bound]

    return signature


def visible_options(self: Any) -> list[str]:
    """``_visible_option_list`` without a walk through the class of the values, which has no public names."""
    return sorted(name for name in vars(self._visible_options) if name[0] != "_")


def remembering_results(infer: Callable[..., Any]) -> Callable[..., Any]:
    """``infer_return_type_func`` that walks through the code of a function without a closure once for its types."""
    known: dict[Any, Any] = {}

    @functools.wraps(infer)
    def result(f: Any, input_types: list[Any], debug: bool = False, depth: int = 0) -> Any:
        if debug or f.__closure__ or any(isinstance(kind, trivial_inference.Const) for kind in input_types):
            return infer(f, input_types, debug, depth)
        asked = f.__code__, id(f.__globals__), tuple(input_types), depth
        if asked not in known:
            known[asked] = infer(f, input_types, debug, depth)
        return known[asked]

    return result


def shallow_size(*objects: Any) -> int:
    """``get_deep_size`` without a walk through all that is imported; it only bounds a cache of 100 MB."""
    return sum(map(sys.getsizeof, objects))


@functools.lru_cache(maxsize=4096)
def compress_lightly(data: bytes, compresslevel: int = 9) -> bytes:
    """``bz2.compress`` that clears 100 kB of memory for each pickled step, rather than 900 kB, and equal ones once."""
    return bz2.compress(data, 1)


decompress = functools.lru_cache(maxsize=4096)(bz2.decompress)


def remember() -> None:
    """Change Beam in this process."""
    core.get_function_args_defaults = remembering_arguments(core.get_function_args_defaults)
    core._check_fn_use_yield_and_return = remembering_good_functions(core._check_fn_use_yield_and_return)
    schemas.SchemaTranslation.named_tuple_from_schema = knowing_row_types(  # type: ignore[method-assign]  # as below
        schemas.SchemaTranslation.named_tuple_from_schema
    )
    PipelineOptions.view_as = remembering_views(PipelineOptions.view_as)  # type: ignore[method-assign]  # Beam has no hook for this
    PipelineOptions._visible_option_list = visible_options  # type: ignore[method-assign]  # as above
    userstate.get_dofn_specs = remembering_specs(userstate.get_dofn_specs)
    transform_evaluator.get_dofn_specs = userstate.get_dofn_specs
    cloudpickle_pickler.bz2 = types.SimpleNamespace(compress=compress_lightly, decompress=decompress)
    hints = remembering_hints(decorators.IOTypeHints.from_callable)
    decorators.IOTypeHints.from_callable = staticmethod(hints)  # type: ignore[method-assign,assignment]  # as above
    decorators.get_signature = core.get_signature = remembering_signatures(decorators.get_signature)
    # each step remembers the stack that made it, to be named in errors
    decorators.traceback = types.SimpleNamespace(format_stack=lambda limit: [])
    trivial_inference.infer_return_type_func = remembering_results(trivial_inference.infer_return_type_func)
    statecache.get_deep_size = shallow_size
