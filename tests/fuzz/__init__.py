"""Programs at random under Perspex and under real JAX: see README.md."""
