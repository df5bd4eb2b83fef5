"""Jitted functions: their signatures and programs, why they recompile, when they are stale."""
