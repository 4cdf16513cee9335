"""What the tests remember of Beam is what Beam says."""

from __future__ import annotations

import inspect
import types

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, StandardOptions
from apache_beam.transforms import core

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
