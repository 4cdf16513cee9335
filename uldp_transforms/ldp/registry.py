"""Tables of named classes: what stands in a table can be named in JSON, or on a command line.

Other packages add classes by entry points, whose group is the name of the table. They are loaded when somebody asks for
a name that the table does not have, or for all of it; importing this package loads none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from uldp_transforms.ldp.checks import describe, require_keys, require_mapping
from uldp_transforms.ldp.errors import SpecError

T = TypeVar("T")


class EntryPoints:
    """The classes that other packages register in a group, loaded once."""

    def __init__(self, kind: str, group: str, add: Callable[[Any], object]):
        self._kind, self._group, self._add = kind, group, add
        self._loaded = False

    def load(self) -> None:
        """Add them all.

        Raises:
            SpecError: for the first one that cannot be imported, or whose name is taken; the next call tries again.
        """
        if self._loaded:
            return
        from importlib.metadata import entry_points  # noqa: PLC0415  # most programs never ask

        self._loaded = True  # what is loaded may ask for the table itself
        for entry in entry_points(group=self._group):
            try:
                self._add(entry.load())
            except Exception as error:
                self._loaded = False
                where = f"{self._kind} {entry.name!r} of the package {entry.dist.name if entry.dist else 'unknown'}"
                raise SpecError(f"{where} cannot be added: {error}") from error


class Registry(Generic[T]):
    """Named classes of one kind. Each class has an ``id``; an id is never given twice and never changes meaning."""

    def __init__(self, kind: str, classes: Iterable[type[T]]):
        self.kind = kind
        self._classes: dict[str, type[T]] = {}
        self._others = EntryPoints(kind, f"uldp_transforms.{kind}s", self.register)
        for cls in classes:
            self.register(cls)

    def register(self, cls: type[T]) -> type[T]:
        """Add a class (also usable as a decorator).

        Raises:
            SpecError: if its id is taken by another class.
        """
        name = cls.id  # type: ignore[attr-defined]
        if self._classes.get(name, cls) is not cls:
            raise SpecError(f"{self.kind}.id must be new, got {name!r}, which {self._classes[name].__name__} has")
        self._classes[name] = cls
        return cls

    def __contains__(self, name: object) -> bool:
        """Whether a class has this id; those of other packages are loaded only for an id that is not known yet."""
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
        """The object that a JSON object describes: ``id`` names the class, the other keys are its fields.

        Args:
            spec: ``{"id": ..., field: value, ...}``.
            context: fields that do not come from the JSON.

        Raises:
            SpecError: for a missing or unknown key or a value that the class refuses.
        """
        fields = dict(require_mapping(self.kind, spec))
        cls = self[fields.pop("id", None)]
        allowed = {f.name: f for f in dataclasses.fields(cls) if f.init and f.name not in context}  # type: ignore[arg-type]
        needed = [
            name
            for name, f in allowed.items()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        require_keys(cls.__name__, fields, needed, allowed)
        return cls(**context, **fields)


class Table(list[T]):
    """A list of classes in their order on the command line; those of other packages come last."""

    def __init__(self, kind: str, classes: Iterable[T], options: Callable[[T], Iterable[str]]):
        """Make the table.

        Args:
            kind: ``uldp_transforms.<kind>s`` is the group of entry points.
            classes: those of this package.
            options: of a class, which no other one may have.
        """
        super().__init__(classes)
        self._kind, self._options = kind, options
        self._others = EntryPoints(kind, f"uldp_transforms.{kind}s", self.register)

    def register(self, cls: T) -> None:
        """Add a class behind the others.

        Raises:
            SpecError: if another class has one of its options.
        """
        own = set(self._options(cls))
        for other in super().__iter__():
            taken = sorted(own & set(self._options(other)))
            if taken and other is not cls:
                name = getattr(other, "__name__", other)
                raise SpecError(f"{self._kind}.options must be new, got {taken[0]}, which {name} has")
        if cls not in list(super().__iter__()):
            self.append(cls)

    def __iter__(self) -> Iterator[T]:
        self._others.load()
        return super().__iter__()

    def __len__(self) -> int:
        self._others.load()
        return super().__len__()
