"""Tables of named classes: what stands in a table can be named in JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from uldp_transforms.ldp.checks import describe, require_keys, require_mapping
from uldp_transforms.ldp.errors import SpecError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named classes of one kind. Each class has an ``id``; an id is never given twice and never changes meaning."""

    def __init__(self, kind: str, classes: Iterable[type[T]]):
        self.kind = kind
        self._classes: dict[str, type[T]] = {}
        for cls in classes:
            self.register(cls)

    def register(self, cls: type[T]) -> type[T]:
        """Add a class (also usable as a decorator).

        Raises:
            SpecError: if its id is taken.
        """
        name = cls.id  # type: ignore[attr-defined]
        if name in self._classes:
            raise SpecError(f"{self.kind}.id must be new, got {name!r}, which {self._classes[name].__name__} has")
        self._classes[name] = cls
        return cls

    def __getitem__(self, name: object) -> type[T]:
        if not isinstance(name, str) or name not in self._classes:
            raise SpecError(f"{self.kind}.id must be one of {', '.join(sorted(self._classes))}, got {describe(name)}")
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
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
        allowed = {f.name: f for f in dataclasses.fields(cls) if f.name not in context}  # type: ignore[arg-type]
        needed = [
            name
            for name, f in allowed.items()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        require_keys(cls.__name__, fields, needed, allowed)
        return cls(**context, **fields)
