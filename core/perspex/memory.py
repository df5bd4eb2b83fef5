"""The memories that arrays can lie in: `jax.memory`.

`device_put(x, memory.Space.Host)` moves an array to the memory of the host, `memory.Space.Device`
moves it back. `x.sharding.memory_kind` says where an array lies, and so does its type:
`f32<host>[3]`. The results of an operation lie where its operands do.
"""

from perspex.layout.memories import MemorySpace as Space

__all__ = ["Space"]
