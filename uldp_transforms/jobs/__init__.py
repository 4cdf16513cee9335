"""Programs: ``uldp NAME`` runs ``main`` of the module or package NAME in here."""
