"""Accounts of every report: the ledger, reports in transit, and the share of rejected reports."""
