"""What each operation does to sparse arrays, for `sparsify`.

The rules stand in two tables, by primitive, one for `BCOO` and one for `BCSR`: primitives stand
floors below and know nothing of sparse arrays. A rule takes the operands, at least one of them a
`Sparse`, and the params, and returns the list of results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import lax
from perspex import numpy as pnp
from perspex.experimental.sparse import bcsr, layout, products, slicing, structure
from perspex.experimental.sparse.api import todense_p
from perspex.experimental.sparse.formats import BCOO, BCSR
from perspex.ops.collectives import pvary
from perspex.ops.elementwise import relu
from perspex.tracing.primitive import Primitive

# Where primitives have names with `_p`, which `lax` gives them as it is imported.
ops: Any = lax


class Sparse(NamedTuple):
    """A sparse array in a traced function. `places` is the same object for the same indices."""

    mat: Any
    places: object

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mat.shape

    @property
    def ndim(self) -> int:
        return self.mat.ndim


def sparse(x: Any) -> Any:
    """A value as a rule returns it: a sparse array with places of its own, or a dense array."""
    return Sparse(x, object()) if isinstance(x, (BCOO, BCSR)) else x


def array(x: Any) -> Any:
    """A sparse or dense array that stands for a value."""
    return x.mat if isinstance(x, Sparse) else pnp.asarray(x)


Rule = Callable[..., list[Any]]
sparse_rules_bcoo: dict[Primitive, Rule] = {}
sparse_rules_bcsr: dict[Primitive, Rule] = {}

_DENSE_RESULTS = {
    ops.acos_p, ops.acosh_p, ops.bessel_i0e_p, ops.cos_p, ops.cosh_p, ops.eq_p, ops.exp_p,
    ops.exp2_p, ops.ge_p, ops.gt_p, ops.le_p, ops.lt_p, ops.log_p, ops.log2_p, ops.ne_p, ops.xor_p,
}  # fmt: skip


def apply(primitive: Primitive, values: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results of an operation on sparse and dense values, as a list."""
    mats = [x.mat for x in values if isinstance(x, Sparse)]
    if not mats:
        out = primitive(*values, **params)
        return list(out) if primitive.multiple_results else [out]
    in_rows = any(isinstance(mat, BCSR) for mat in mats)
    rule = (sparse_rules_bcsr if in_rows else sparse_rules_bcoo).get(primitive)
    if rule is None:
        raise _no_rule(primitive, mats[0])
    return rule(*values, **params)


def _no_rule(primitive: Primitive, mat: Any) -> NotImplementedError:
    why = " because it would result in dense output" if primitive in _DENSE_RESULTS else ""
    return NotImplementedError(
        f"sparse rule for {primitive} is not implemented{why}. It was applied to a {mat!r}. Use "
        "sparse.todense() to convert it to a dense array"
    )


def _with_data(x: Sparse, data: Any) -> Sparse:
    """The same places with other numbers."""
    parts, facts = x.mat.tree_flatten()
    return Sparse(type(x.mat)((data, *parts[1:]), **facts), x.places)


# ---- Elementwise operations that give zero for zero ---------------------------------------------


def _unique(x: Sparse) -> Sparse:
    if x.mat.unique_indices:
        return x
    return sparse(x.mat.sum_duplicates(nse=x.mat.nse, remove_zeros=False))


def _elementwise(primitive: Primitive, linear: bool) -> Rule:
    def rule(x: Sparse, **params: Any) -> list[Any]:
        x = x if linear else _unique(x)
        return [_with_data(x, primitive(x.mat.data, **params))]

    return rule


_LINEAR = [ops.conj_p, ops.copy_p, ops.imag_p, ops.neg_p, ops.real_p, pvary]
_NONLINEAR = [
    ops.abs_p, ops.asin_p, ops.asinh_p, ops.atan_p, ops.atanh_p, ops.bessel_i1e_p, ops.expm1_p,
    ops.log1p_p, ops.sign_p, ops.sin_p, ops.sinh_p, ops.sqrt_p, ops.square_p, ops.tan_p,
    ops.tanh_p, ops.convert_element_type_p, relu,
]  # fmt: skip

for _primitive in _LINEAR + _NONLINEAR:
    _rule = _elementwise(_primitive, _primitive in _LINEAR)
    sparse_rules_bcoo[_primitive] = sparse_rules_bcsr[_primitive] = _rule


def _integer_pow(x: Sparse, *, y: int) -> list[Any]:
    if y <= 0:
        raise NotImplementedError(
            f"sparse rule for {ops.integer_pow_p} with non-positive exponent {y} is not "
            "implemented because it would result in dense output. Use sparse.todense() to convert "
            "the argument to a dense array"
        )
    x = _unique(x)
    return [_with_data(x, lax.integer_pow(x.mat.data, y))]


sparse_rules_bcoo[ops.integer_pow_p] = sparse_rules_bcsr[ops.integer_pow_p] = _integer_pow


# ---- Operations on two arrays -------------------------------------------------------------------


def _repeated(x: Any, y: Any) -> Any:
    """`x` where the other operand of an elementwise operation is `y`: scalars fit every shape."""
    return pnp.broadcast_to(x, y.shape) if not x.ndim else x


def _add(x: Any, y: Any) -> list[Any]:
    if isinstance(x, Sparse) and isinstance(y, Sparse):
        return [_add_sparse(x, y)]
    mat, dense = (x, y) if isinstance(x, Sparse) else (y, x)
    dense = pnp.asarray(dense)
    if dense.shape != np.broadcast_shapes(mat.shape, dense.shape):
        raise NotImplementedError(
            f"Addition between a sparse array of shape {mat.shape} and a dense array of shape "
            f"{dense.shape} is not implemented when the output shape is larger than that of the "
            "dense array, to prevent silent densification. Use sparse.todense() if you want it"
        )
    return [mat.mat.todense() + dense]


def _add_sparse(x: Sparse, y: Sparse) -> Sparse:
    if x.shape != y.shape:
        raise NotImplementedError(
            f"Addition between sparse matrices of different shapes, {x.shape} and {y.shape}"
        )
    a, b = x.mat, y.mat
    if x.places is y.places:
        return _with_data(x, lax.add(a.data, b.data))
    if (a.n_batch, a.n_dense) != (b.n_batch, b.n_dense):
        raise NotImplementedError(
            f"Addition between sparse matrices with different batch/dense dimensions: {a}, {b}. "
            "Call update_layout before"
        )
    pairs = zip(a._bufs, b._bufs, strict=True)
    data, indices = [pnp.concatenate(pair, axis=a.n_batch) for pair in pairs]
    return sparse(BCOO((data, indices), shape=x.shape))


def _sub(x: Any, y: Any) -> list[Any]:
    if isinstance(x, Sparse) and isinstance(y, Sparse):
        return [_add_sparse(x, _with_data(y, lax.neg(y.mat.data)))]
    raise NotImplementedError(
        "Subtraction between sparse and dense array. Use sparse.todense() to convert the sparse one"
    )


def _mul(x: Any, y: Any) -> list[Any]:
    if isinstance(x, Sparse) and isinstance(y, Sparse):
        if x.places is y.places and x.mat.unique_indices:
            return [_with_data(x, lax.mul(x.mat.data, y.mat.data))]
        return [sparse(products.bcoo_multiply_sparse(x.mat, y.mat))]
    mat, dense = (x, y) if isinstance(x, Sparse) else (y, x)
    return [_with_data(mat, products.bcoo_multiply_dense(mat.mat, dense))]


def _div(x: Any, y: Any) -> list[Any]:
    if isinstance(y, Sparse):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense "
            "output. Use sparse.todense() to convert it to a dense array"
        )
    return [_with_data(x, products.bcoo_multiply_dense(x.mat, 1.0 / pnp.asarray(y)))]


sparse_rules_bcoo.update(
    {ops.add_p: _add, ops.sub_p: _sub, ops.mul_p: _mul, ops.div_p: _div},
)


# ---- Operations on whole arrays -----------------------------------------------------------------


def _standard(function: Callable[..., Any]) -> Rule:
    """The rule that a function of arrays with the params by name gives."""

    def rule(*values: Any, **params: Any) -> list[Any]:
        return [sparse(function(*map(array, values), **params))]

    return rule


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays, **params: function(arrays, **params)


def _stack(*arrays: Any, axis: int, expand: Callable[..., Any], join: Callable[..., Any]) -> Any:
    shape = arrays[0].shape
    dims = [i if i < axis else i + 1 for i in range(len(shape))]
    wide = [
        expand(x, shape=(*shape[:axis], 1, *shape[axis:]), broadcast_dimensions=dims)
        for x in arrays
    ]
    return join(wide, dimension=axis)


def _gather(operand: Any, start_indices: Any, **params: Any) -> Any:
    return slicing.bcoo_gather(operand, start_indices, **params)


def _convolution(lhs: Any, rhs: Any, **params: Any) -> Any:
    return products.bcoo_conv_general_dilated(lhs, rhs, **params)


_BCOO: dict[Any, Callable[..., Any]] = {
    ops.broadcast_in_dim_p: layout.bcoo_broadcast_in_dim,
    ops.concatenate_p: _joined(layout.bcoo_concatenate),
    ops.conv_general_dilated_p: _convolution,
    ops.dot_general_p: products.bcoo_dot_general,
    ops.dynamic_slice_p: lambda x, *at, slice_sizes: slicing.bcoo_dynamic_slice(x, at, slice_sizes),
    ops.gather_p: _gather,
    ops.reshape_p: layout.bcoo_reshape,
    ops.rev_p: layout.bcoo_rev,
    ops.slice_p: slicing.bcoo_slice,
    ops.squeeze_p: layout.bcoo_squeeze,
    ops.stack_p: functools.partial(
        _stack, expand=layout.bcoo_broadcast_in_dim, join=layout.bcoo_concatenate
    ),
    todense_p: lambda x, tree: x.todense(),
}
for _primitive, _function in _BCOO.items():
    sparse_rules_bcoo[_primitive] = _standard(_function)

_BCSR: dict[Any, Callable[..., Any]] = {
    ops.broadcast_in_dim_p: bcsr.bcsr_broadcast_in_dim,
    ops.concatenate_p: _joined(bcsr.bcsr_concatenate),
    ops.dot_general_p: bcsr.bcsr_dot_general,
    ops.stack_p: functools.partial(
        _stack, expand=bcsr.bcsr_broadcast_in_dim, join=bcsr.bcsr_concatenate
    ),
    todense_p: lambda x, tree: x.todense(),
}
for _primitive, _function in _BCSR.items():
    sparse_rules_bcsr[_primitive] = _standard(_function)


def _transpose(x: Sparse, *, permutation: Sequence[int]) -> list[Any]:
    order = [int(p) for p in permutation]
    mat = x.mat
    out = structure.bcoo_transpose(mat, permutation=order)
    # The places are the same ones unless an axis moves that has indices.
    last = mat.n_batch + mat.n_sparse
    same = order[:last] == list(range(last))
    return [Sparse(out, x.places if same else object())]


def _reduce_sum(x: Sparse, *, axes: Sequence[int], out_sharding: Any = None) -> list[Any]:
    out = slicing.bcoo_reduce_sum(x.mat, axes=axes)
    return [sparse(out) if out.shape else out.data.sum()]


sparse_rules_bcoo[ops.transpose_p] = _transpose
sparse_rules_bcoo[ops.reduce_sum_p] = _reduce_sum
