"""What a collector does with decoded reports, whatever engine runs it: counts, known reports, entries of the ledger."""
