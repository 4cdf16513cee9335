"""Mechanisms whose reports are outputs of a channel that a matrix of probabilities describes."""
