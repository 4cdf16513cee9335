"""Registries of named classes for JSON and command lines.

Other packages add classes by entry points, whose group is the name of the table. They are loaded when an unknown name,
or the complete table, is requested; importing this package loads none.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from uldp_transforms.ldp.checks import describe, require_keys, require_mapping
from uldp_transforms.ldp.errors import SpecError

T = TypeVar("T")


class EntryPoints:
    """The classes that other packages register in a group of entry points, loaded once."""

    def __init__(self, kind: str, group: str, add: Callable[[Any], object]):
        self._kind, self._group, self._add = kind, group, add
        self._loaded = False

    def load(self) -> None:
        """Load and register all classes of the group.

        Raises:
            SpecError: if a class cannot be imported, or its name is taken; the next call tries again.
        """
        if self._loaded:
            return
        from importlib.metadata import entry_points  # noqa: PLC0415  # most programs never ask

        self._loaded = True  # loaded modules may use the table themselves
        for entry in entry_points(group=self._group):
            try:
                self._add(entry.load())
            except Exception as error:
                self._loaded = False
                where = f"{self._kind} {entry.name!r} of the package {entry.dist.name if entry.dist else 'unknown'}"
                raise SpecError(f"{where} cannot be added: {error}") from error


class Registry(Generic[T]):
    """Named classes of one kind. Each class has an ``id``; ids are never reused and never change meaning."""

    def __init__(self, kind: str, classes: Iterable[type[T]]):
        self.kind = kind
        self._classes: dict[str, type[T]] = {}
        self._others = EntryPoints(kind, f"uldp_transforms.{kind}s", self.register)
        for cls in classes:
            self.register(cls)

    def register(self, cls: type[T]) -> type[T]:
        """Add a class (also usable as a decorator).

        Raises:
            SpecError: if another class has its id.
        """
        name = cls.id  # type: ignore[attr-defined]
        if self._classes.get(name, cls) is not cls:
            raise SpecError(f"{self.kind}.id must be new, got {name!r}, used by {self._classes[name].__name__}")
        self._classes[name] = cls
        return cls

    def __contains__(self, name: object) -> bool:
        """Whether a class has this id; classes of other packages are loaded only for an unknown id."""
        if isinstance(name, str) and name not in self._classes:
            self._others.load()
        return isinstance(name, str) and name in self._classes

    def __getitem__(self, name: object) -> type[T]:
        if not isinstance(name, str) or name not in self:
            raise SpecError(f"{self.kind}.id must be one of {', '.join(sorted(self._classes))}, got {describe(name)}")
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        self._others.load()
        return iter(self._classes)

    def build(self, spec: object, **context: Any) -> T:
        """Build an object from its JSON object: ``id`` names the class, the other keys are its fields.

        Args:
            spec: ``{"id": ..., field: value, ...}``.
            context: fields that come from the alphabet; those that the class does not have are left out.

        Raises:
            SpecError: if a key is missing or unknown, or the class refuses a value; names keys by their place in the
                JSON object, such as ``mechanism.epsilon``, and not by the class.
        """
        fields = dict(require_mapping(self.kind, spec))
        cls = self[fields.pop("id", None)]
        allowed = {f.name: f for f in dataclasses.fields(cls) if f.init and f.name not in context}  # type: ignore[arg-type]
        context = {name: value for name, value in context.items() if name in {f.name for f in dataclasses.fields(cls)}}  # type: ignore[arg-type]
        needed = [
            name
            for name, f in allowed.items()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        require_keys(self.kind, fields, needed, allowed)
        try:
            return cls(**context, **fields)
        except SpecError as error:
            raise SpecError(self._as_written(str(error), cls.__name__, context)) from error

    def _as_written(self, sentence: str, of_class: str, context: Iterable[str]) -> str:
        """A sentence that names fields by their place in the JSON object, or as those of the alphabet."""
        for name in context:
            sentence = re.sub(rf"\b{of_class}\.{name}\b", f"{self.kind}.{name} (of the alphabet)", sentence)
        return re.sub(rf"\b{of_class}\.(?=[a-z_])", f"{self.kind}.", sentence)


class Table(list[T]):
    """A list of classes in the order of the command line; classes of other packages are last."""

    def __init__(self, kind: str, classes: Iterable[T], options: Callable[[T], Iterable[str]]):
        """Make the table.

        Args:
            kind: ``uldp_transforms.<kind>s`` is the group of entry points.
            classes: classes of this package.
            options: function that returns the options of a class, which no other class may have.
        """
        super().__init__(classes)
        self._kind, self._options = kind, options
        self._others = EntryPoints(kind, f"uldp_transforms.{kind}s", self.register)

    def register(self, cls: T) -> None:
        """Append a class.

        Raises:
            SpecError: if another class has one of its options.
        """
        own = set(self._options(cls))
        for other in super().__iter__():
            taken = sorted(own & set(self._options(other)))
            if taken and other is not cls:
                name = getattr(other, "__name__", other)
                raise SpecError(f"{self._kind}.options must be new, got {taken[0]}, used by {name}")
        if cls not in list(super().__iter__()):
            self.append(cls)

    def __iter__(self) -> Iterator[T]:
        self._others.load()
        return super().__iter__()

    def __len__(self) -> int:
        self._others.load()
        return super().__len__()
