"""JAX's inside in terms of ours: what libraries reach for below the public functions."""
