"""Kairouz, Bonawitz and Ramage 2016: discrete distribution estimation under local privacy."""
