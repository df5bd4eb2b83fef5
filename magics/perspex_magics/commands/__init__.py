"""The magics that transform or inspect a cell."""
