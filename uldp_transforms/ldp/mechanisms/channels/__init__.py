"""Mechanisms that are defined by a matrix of output probabilities (channel)."""
