"""The tests of the array API standard, on `jax.numpy` of Perspex and of jax."""
