"""A cell as a function from arrays to arrays."""
