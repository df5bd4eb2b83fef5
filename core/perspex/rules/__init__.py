"""Functions with rules of their own for differentiation and batching."""
