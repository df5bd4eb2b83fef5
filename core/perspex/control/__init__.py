"""Higher-order primitives: operations whose parameters are programs."""
