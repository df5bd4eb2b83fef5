"""Types for annotations: `jax.typing`.

`Array` is the type of arrays: what functions return.

`ArrayLike` is what functions take where they want an array: an array, a NumPy array or number, or a
number of Python; not a list.

`DTypeLike` is what functions take where they want a dtype: a dtype, its name, a scalar type such as
`float` or `jnp.float32`, or an object with a `dtype`.
"""

from perspex.arguments.types import Array as Array
from perspex.arguments.types import ArrayLike as ArrayLike
from perspex.arguments.types import DTypeLike as DTypeLike
