"""The part of a page about the windows: trends of values, and shares of groups through time."""
