"""The transforms: forward mode, linearization, transposition, batching, dead code."""
