"""What XLA has compiled: the record, the cache, recompilations and long compilations."""
