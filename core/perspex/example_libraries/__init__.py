"""Small optimizers and layers that JAX keeps for its examples: `jax.example_libraries`."""
