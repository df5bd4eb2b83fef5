"""Names that JAX keeps under `jax.experimental`."""

from perspex.api.callbacks import io_callback as io_callback
