"""What the tests remember of Beam is what Beam says."""

from __future__ import annotations

import bz2
import inspect
import types

import apache_beam as beam
from apache_beam import coders
from apache_beam.options.pipeline_options import DebugOptions, GoogleCloudOptions, PipelineOptions, StandardOptions
from apache_beam.transforms import core, userstate
from apache_beam.typehints import Any, Dict, decorators, schemas, trivial_inference
from apache_beam.typehints.typecheck import OutputCheckWrapperDoFn

from tests.support import quick_beam


def test_arguments_are_those_of_the_function() -> None:
    """Of every method of Beam's and our steps that are loaded, asked twice."""
    plain = inspect.unwrap(core.get_function_args_defaults)
    quick = quick_beam.remembering_arguments(plain)
    found = 0
    for cls in [*beam.DoFn.__subclasses__(), *beam.CombineFn.__subclasses__()]:
        for _, function in inspect.getmembers(cls, inspect.isfunction):
            method = types.MethodType(function, cls)
            assert quick(method) == quick(method) == plain(method)
            found += 1
    assert found > 100


def test_what_a_caller_changes_is_its_own() -> None:
    quick = quick_beam.remembering_arguments(inspect.unwrap(core.get_function_args_defaults))
    method = beam.DoFn().process
    for listed in quick(method):
        listed.clear()
    assert quick(method) == (["element"], [])


def test_functions_without_an_object_are_asked_anew() -> None:
    quick = quick_beam.remembering_arguments(inspect.unwrap(core.get_function_args_defaults))
    assert quick(lambda a, b=1: None) == (["a", "b"], [1])


def test_views_share_their_values() -> None:
    options, others = PipelineOptions(["--runner=One", "--project=p"]), PipelineOptions(["--runner=Two"])
    for one in (options, others):
        assert one.view_as(StandardOptions) is one.view_as(StandardOptions)
    options.view_as(StandardOptions).streaming = True
    options.view_as(GoogleCloudOptions).view_as(StandardOptions).runner = "Three"
    assert options.view_as(StandardOptions).streaming is True
    assert options.view_as(StandardOptions).runner == "Three"
    assert options.view_as(GoogleCloudOptions).project == "p"
    assert (others.view_as(StandardOptions).streaming, others.view_as(StandardOptions).runner) == (False, "Two")


def test_a_list_of_one_view_is_not_that_of_other_options() -> None:
    first, second = (PipelineOptions(["--experiment=one"]).view_as(DebugOptions) for _ in range(2))
    first.add_experiment("two")
    assert (first.experiments, second.experiments) == (["one", "two"], ["one"])


def test_visible_options_are_all_names_of_a_view() -> None:
    plain = PipelineOptions(["--project=p", "--streaming"])
    for cls in (StandardOptions, GoogleCloudOptions, DebugOptions):
        view = plain.view_as(cls)
        expected = sorted(name for name in dir(view._visible_options) if name[0] != "_")
        assert quick_beam.visible_options(view) == expected != []


class _Own(beam.DoFn):
    """A step that takes a method of another object for its own."""

    def __init__(self, other: beam.DoFn):
        self.process = other.process


class _Held(beam.DoFn):
    """A step with a state and a timer."""

    STATE = userstate.BagStateSpec("state", coders.BytesCoder())
    TIMER = userstate.TimerSpec("timer", userstate.TimeDomain.WATERMARK)

    def process(self, element, state=beam.DoFn.StateParam(STATE), timer=beam.DoFn.TimerParam(TIMER)):
        yield element

    @userstate.on_timer(TIMER)
    def release(self):
        return []


def test_states_and_timers_are_those_of_the_object() -> None:
    plain = inspect.unwrap(userstate.get_dofn_specs)
    quick = quick_beam.remembering_specs(plain)
    steps = [_Held(), _Held(), _Own(beam.DoFn()), _Own(_Held()), beam.DoFn(), beam.ParDo(lambda element: [element]).fn]
    steps += [OutputCheckWrapperDoFn(step, "a step whose types are checked") for step in steps]
    for step in [*steps, *steps]:
        assert quick(step) == plain(step)
    assert quick(steps[0]) == ({_Held.STATE}, {_Held.TIMER})
    quick(steps[0])[0].clear()
    assert quick(steps[0]) == ({_Held.STATE}, {_Held.TIMER})


def test_methods_that_mix_yield_and_return_are_told_each_time() -> None:
    class Mixed(beam.DoFn):
        def process(self, element):
            if element:
                yield element
            return [element]

    asked: list[object] = []

    def plain(method: object) -> bool:
        asked.append(method)
        return bool(inspect.unwrap(core._check_fn_use_yield_and_return)(method))

    check = quick_beam.remembering_good_functions(plain)
    assert [check(Mixed().process) for _ in range(3)] == [True] * 3
    assert [check(_Held().process) for _ in range(3)] == [False] * 3
    assert [check(_length) for _ in range(3)] == [False] * 3
    assert [check(len) for _ in range(2)] == [False] * 2
    assert len(asked) == 3 + 1 + 1 + 2


def test_a_row_has_the_type_that_its_schema_got_first() -> None:
    translation = schemas.SchemaTranslation(schemas.SchemaTypeRegistry())
    fields = beam.typehints.row_type.RowTypeConstraint.from_fields([("length", int)])
    schema = schemas.typing_to_runner_api(fields, schemas.SchemaTypeRegistry()).row_type.schema
    asked: list[object] = []

    def plain(self: Any, schema: object) -> Any:
        asked.append(schema)
        return inspect.unwrap(schemas.SchemaTranslation.named_tuple_from_schema)(self, schema)

    quick = quick_beam.knowing_row_types(plain)
    first, again = (quick(translation, schema) for _ in range(2))
    assert first is again is plain(translation, schema) and first._fields == ("length",)
    assert len(asked) == 1 + 1


def test_what_is_compressed_lightly_is_read_by_all() -> None:
    for data in (b"", b"step" * 100_000):
        assert bz2.decompress(quick_beam.compress_lightly(data)) == data


def _length(text: str) -> int:
    return len(text)


def _pair(element):
    return {element: 1}


def _returns(one):
    return lambda element: one


def test_hints_are_those_of_the_function() -> None:
    plain = inspect.unwrap(decorators.IOTypeHints.from_callable)
    quick = quick_beam.remembering_hints(plain)
    method = types.MethodType(_length, "text")
    for function in (_length, method, _length, method, _pair, len, lambda element: element):
        assert quick(function) == plain(function)
    assert quick(_length).input_types == ((Any,), {})  # these annotations are texts
    assert quick(method).input_types == ((), {})


def test_signatures_are_those_of_the_function() -> None:
    """Of a method without its object."""
    plain = inspect.unwrap(decorators.get_signature)
    quick = quick_beam.remembering_signatures(plain)
    method = types.MethodType(_length, "text")
    for function in (_length, method, _length, method, _pair, len, str.upper, lambda element, one=1: element):
        assert quick(function) == plain(function)
    assert (list(quick(_length).parameters), list(quick(method).parameters)) == (["text"], [])


def test_results_are_inferred_for_each_type() -> None:
    """Of functions with a closure anew."""
    plain = inspect.unwrap(trivial_inference.infer_return_type_func)
    quick = quick_beam.remembering_results(plain)
    for kind in (str, int, str, Any):
        assert quick(_pair, [kind]) == plain(_pair, [kind]) == Dict[kind, int]
    assert [quick(lambda element, one=one: one, [str, type(one)]) for one in (1, "")] == [int, str]
    assert [quick(_returns(one), [str]) for one in (1, "", 1)] == [int, str, int]
