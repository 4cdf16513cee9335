"""Command-line programs: ``uldp NAME`` runs ``main`` of the module or package NAME in this package."""
