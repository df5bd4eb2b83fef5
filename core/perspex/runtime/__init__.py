"""Clients, arrays, compiling and dispatch: where programs meet jaxlib."""
