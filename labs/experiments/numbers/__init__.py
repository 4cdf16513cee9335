"""Estimates of numbers by the square wave: ours beside the published decoder, over several populations."""
