"""Murakami and Kawamoto 2019: utility-optimized local differential privacy."""
