"""What everything stands on: source lines, events, registries, effects, and what we know of XLA."""
