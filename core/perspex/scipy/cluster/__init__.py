"""`scipy.cluster`: vector quantization."""

from perspex.scipy.cluster import vq as vq
