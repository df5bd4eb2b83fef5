"""A restart that keeps the session: what is written, how it comes back, and `%restart`."""
