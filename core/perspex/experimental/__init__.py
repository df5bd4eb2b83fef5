"""Names that JAX keeps under `jax.experimental`."""

from perspex.api.callbacks import io_callback as io_callback
from perspex.base.public import publish as _publish

_publish(globals())
