"""Registries: classes of this package by name, and those of other packages only when they are asked for."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.registry import EntryPoints, Registry, Table


@dataclasses.dataclass(frozen=True)
class One:
    id: ClassVar[str] = "one"
    options: ClassVar[tuple[str, ...]] = ("--one", "--both")
    given: int
    needed: str
    free: float = 0.5
    made: list[int] = dataclasses.field(default_factory=list)
    derived: int = dataclasses.field(init=False, default=7)


class Two:
    id: ClassVar[str] = "two"
    options: ClassVar[tuple[str, ...]] = ("--two",)


class AnotherOne:
    id: ClassVar[str] = "one"
    options: ClassVar[tuple[str, ...]] = ("--a", "--both")


@pytest.fixture()
def packages(tmp_path: Path) -> Iterator[Path]:
    """A folder of packages that Python finds."""
    sys.path.insert(0, str(tmp_path))
    try:
        yield tmp_path
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("tiny_plugin", None)


def install(folder: Path, kind: str, *, works: bool) -> None:
    """A package with one class of this kind; its module is there only if it works."""
    info = folder / "tiny-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[uldp_transforms.{kind}s]\nx = tiny_plugin:Three\n", encoding="utf-8")
    if works:
        code = "class Three:\n    id = 'three'\n    options = ('--three',)\n"
        (folder / "tiny_plugin.py").write_text(code, encoding="utf-8")
    importlib.invalidate_caches()


def test_classes_that_cannot_be_imported_are_tried_again(packages: Path) -> None:
    added: list[Any] = []
    others = EntryPoints("shape", "uldp_transforms.shapes", added.append)
    install(packages, "shape", works=False)
    for _ in range(2):
        with pytest.raises(SpecError, match=r"^shape 'x' of the package tiny cannot be added: No module named "):
            others.load()
    install(packages, "shape", works=True)
    others.load()
    others.load()
    assert [cls.__name__ for cls in added] == ["Three"]


def test_names_of_this_package_are_found_without_loading_others(packages: Path) -> None:
    install(packages, "shape", works=False)
    registry: Registry[Any] = Registry("shape", [One, Two])
    assert "one" in registry and registry["two"] is Two
    assert 7 not in registry and None not in registry
    with pytest.raises(SpecError, match=r"^shape.id must be one of one, two, got 7$"):
        registry[7]
    for ask in (lambda: "three" in registry, lambda: registry["three"], lambda: list(registry)):
        with pytest.raises(SpecError, match="cannot be added"):
            ask()
    install(packages, "shape", works=True)
    assert "three" in registry and registry["three"].__name__ == "Three"
    assert list(registry) == ["one", "two", "three"]
    with pytest.raises(SpecError, match=r"^shape.id must be one of one, three, two, got 'four'$"):
        registry["four"]


def test_an_object_is_built_from_its_fields_and_the_context() -> None:
    registry: Registry[Any] = Registry("shape", [One])
    built = registry.build({"id": "one", "needed": "a"}, given=3)
    assert (built.given, built.needed, built.free, built.made, built.derived) == (3, "a", 0.5, [], 7)
    assert registry.build({"id": "one", "needed": "a", "free": 2.0, "made": [1]}, given=3).made == [1]
    for spec, sentence in (
        ({"id": "one"}, "shape needs the key 'needed', got no keys"),
        ({"id": "one", "needed": "a", "given": 4}, "shape takes the keys needed, free, made, got 'given'"),
        ({"id": "one", "needed": "a", "derived": 4}, "shape takes the keys needed, free, made, got 'derived'"),
        ({"needed": "a"}, "shape.id must be one of one, got None"),
        ([], "shape must be a JSON object, got []"),
    ):
        with pytest.raises(SpecError) as caught:
            registry.build(spec, given=3)
        assert str(caught.value) == sentence


def test_faults_of_fields_have_the_place_in_the_file() -> None:
    """Of fields that the file has; those of the context are the alphabet's, and other classes keep their names."""

    @dataclasses.dataclass(frozen=True)
    class Narrow:
        id = "narrow"
        given: int
        width: int

        def __post_init__(self) -> None:
            raise SpecError("Narrow.width must be below Narrow.given and Narrow.widths, got NotNarrow.width")

    registry: Registry[Any] = Registry("shape", [Narrow])
    with pytest.raises(SpecError) as caught:
        registry.build({"id": "narrow", "width": 1}, given=3)
    assert str(caught.value) == (
        "shape.width must be below shape.given (of the alphabet) and shape.widths, got NotNarrow.width"
    )


def test_a_table_keeps_its_order_and_has_each_option_once(packages: Path) -> None:
    install(packages, "stand", works=True)
    table: Table[Any] = Table("stand", [One], lambda cls: cls.options)
    table.register(Two)
    table.register(One)
    with pytest.raises(SpecError, match=r"^stand.options must be new, got --both, used by One$"):
        table.register(AnotherOne)
    assert [cls.__name__ for cls in table] == ["One", "Two", "Three"]
    assert len(table) == 3


def test_the_length_of_a_table_counts_classes_of_other_packages(packages: Path) -> None:
    install(packages, "stand", works=True)
    assert len(Table("stand", [One, Two], lambda cls: cls.options)) == 3


def test_a_module_may_use_the_table_while_it_is_loaded(packages: Path) -> None:
    registry: Registry[Any] = Registry("shape", [One])
    install(packages, "shape", works=True)
    with (packages / "tiny_plugin.py").open("a", encoding="utf-8") as file:
        file.write("import tests.ldp.test_registry as asks\nNAMES = list(asks.IN_USE[0])\n")
    IN_USE[:] = [registry]
    assert list(registry) == ["one", "three"]
    assert sys.modules["tiny_plugin"].NAMES == ["one"]


IN_USE: list[Registry[Any]] = []
