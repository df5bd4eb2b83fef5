"""The public transforms over pytrees: `jit` and its stages, inspection, and values."""
