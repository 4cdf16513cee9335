"""The version of this package."""

__version__ = "0.5.0"

SOFTWARE = f"uldp_transforms {__version__}"
"""Name and version of the software, as in rows and run records."""
