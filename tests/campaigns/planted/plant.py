"""A fault that is planted by hand, and the tests that must see it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Plant:
    """A text of a file that is replaced, why that is a fault, and the tests that must see it: files, or some of one."""

    name: str
    path: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    def apply(self, source: str) -> str:
        """The file with the fault.

        Raises:
            ValueError: if the old text is not in it exactly once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.path} must have the old text once, got {source.count(self.old)}")
        return source.replace(self.old, self.new)
