"""The package of JAX's name for its cache on disk."""

from perspex.experimental.compilation_cache import compilation_cache as compilation_cache
