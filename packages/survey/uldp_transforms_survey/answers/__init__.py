"""Shares of yes from randomized answers to a question that several designs ask, and from samples that are surveys."""
