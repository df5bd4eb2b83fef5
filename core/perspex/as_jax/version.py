"""The version of jax whose public interface Perspex answers to: `jax.version`."""

__version__ = "0.12.0"
__version_info__ = tuple([int(number) for number in __version__.split(".")])

__all__ = ["__version__", "__version_info__"]
