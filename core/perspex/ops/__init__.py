"""First-order primitives, each with all its rules beside it."""
