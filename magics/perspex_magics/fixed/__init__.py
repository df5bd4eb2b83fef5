"""What a function does once, while it is traced, and what every later call reuses."""
