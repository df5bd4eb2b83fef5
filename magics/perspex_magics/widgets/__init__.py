"""Widgets: programs, timings, the cache and random keys, alive in the outputs of a notebook."""
