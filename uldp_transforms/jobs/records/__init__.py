"""Files that a run leaves in its directory: its record, its ledger, its lock."""
