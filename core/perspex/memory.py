"""The memories that arrays can lie in: `jax.memory`.

`device_put(x, memory.Space.Host)` moves an array to the memory of the host, `memory.Space.Device`
moves it back. `x.sharding.memory_kind` says where an array lies. A program takes arrays from any
memory; its results lie in that of the device, but for those that it puts elsewhere itself.
"""

from perspex.layout.memories import MemorySpace as Space

__all__ = ["Space"]
