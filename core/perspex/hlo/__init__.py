"""Lowering to StableHLO: the only modules that know `jaxlib.mlir`."""

from perspex.hlo.builder import Builder as Builder
from perspex.hlo.builder import Module as Module
