"""What tests and doctests have in common."""

pytest_plugins = ["support.kept"]
