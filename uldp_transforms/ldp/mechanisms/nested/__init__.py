"""Mechanisms made of other mechanisms: levels of values, each with its own epsilon."""
