"""Tests of the core and of its companions share one plugin."""

pytest_plugins = ["tests.support.suite"]
