"""The version of this package; everything else reads it here."""

__version__ = "0.4.0"
