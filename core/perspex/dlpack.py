"""Arrays from other libraries without a copy, by the DLPack protocol: `jax.dlpack`."""

from perspex.runtime.exchange import from_dlpack as from_dlpack
from perspex.runtime.exchange import is_supported_dtype as is_supported_dtype
