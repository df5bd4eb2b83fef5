"""From a StableHLO module to an executable: processes, caches in memory and on disk, limits."""
