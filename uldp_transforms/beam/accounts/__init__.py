"""What became of every report: the ledger, reports in transit, and the share that was refused."""
