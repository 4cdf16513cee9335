"""The version of this package; everything else reads it here."""

__version__ = "0.4.0"

SOFTWARE = f"uldp_transforms {__version__}"
"""What rows and records name as the software that made them."""
