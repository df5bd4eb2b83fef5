"""Errors as cards, and tracebacks without our own frames."""
