"""What the operators and methods of `BCOO` and `BCSR` compute."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from perspex import numpy as pnp
from perspex.experimental.sparse.bcoo import bcoo_eliminate_zeros as bcoo_eliminate_zeros
from perspex.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from perspex.experimental.sparse.bcoo import bcoo_sort_indices as bcoo_sort_indices
from perspex.experimental.sparse.bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from perspex.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from perspex.experimental.sparse.bcoo import bcoo_transpose as bcoo_transpose
from perspex.experimental.sparse.bcoo import bcoo_update_layout as bcoo_update_layout
from perspex.experimental.sparse.bcsr import bcsr_from_bcoo as bcsr_from_bcoo
from perspex.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from perspex.experimental.sparse.bcsr import bcsr_to_bcoo as bcsr_to_bcoo
from perspex.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from perspex.experimental.sparse.formats import BCOO
from perspex.experimental.sparse.transform import sparsify

absolute = sparsify(pnp.abs)
negative = sparsify(pnp.negative)
positive = sparsify(pnp.positive)
matmul = sparsify(pnp.matmul)
multiply = sparsify(pnp.multiply)
divide = sparsify(pnp.divide)
add = sparsify(pnp.add)
subtract = sparsify(pnp.subtract)
greater = sparsify(pnp.greater)
greater_equal = sparsify(pnp.greater_equal)
less = sparsify(pnp.less)
less_equal = sparsify(pnp.less_equal)
equal = sparsify(pnp.equal)
not_equal = sparsify(pnp.not_equal)


def power(mat: Any, exponent: Any) -> Any:
    """`mat ** exponent`, for an exponent that may decide the program."""
    return sparsify(lambda x: pnp.power(x, exponent))(mat)


def rpower(mat: Any, base: Any) -> Any:
    return sparsify(pnp.power)(base, mat)


def getitem(mat: Any, item: Any) -> Any:
    """`mat[item]`; an array without elements is sparse all the same."""
    out = sparsify(lambda x: operator.getitem(x, item))(mat)
    if isinstance(mat, BCOO) and not isinstance(out, BCOO) and not np.size(out):
        return bcoo_fromdense(out)
    return out


def reshape(mat: Any, *args: Any, **kwargs: Any) -> Any:
    return sparsify(lambda x: x.reshape(*args, **kwargs))(mat)


def astype(mat: Any, *args: Any, **kwargs: Any) -> Any:
    return sparsify(lambda x: x.astype(*args, **kwargs))(mat)


def sum(mat: Any, *args: Any, **kwargs: Any) -> Any:
    return sparsify(lambda x: x.sum(*args, **kwargs))(mat)
