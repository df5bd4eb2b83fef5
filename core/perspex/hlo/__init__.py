"""From a jaxpr to a StableHLO module, and from XLA's text back to equations."""

from perspex.hlo.builder import Builder as Builder
from perspex.hlo.builder import Module as Module
