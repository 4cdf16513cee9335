"""What a collector does with decoded reports, whatever engine runs it: counts, known reports, ledger, files of rows."""
