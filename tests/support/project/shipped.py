"""The files that packages have."""

from __future__ import annotations

NAME = "uldp_transforms"
SHIPPED = ("schemas",)
"""Folders of the checkout of which the wheel has copies."""
FILES = ("LICENSE", "README.md", "pyproject.toml", "setup.py")
