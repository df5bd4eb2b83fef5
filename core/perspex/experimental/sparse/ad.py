"""Derivatives with respect to sparse arrays: those of the stored elements, at the same indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from perspex import tree
from perspex.api import differentiation, jacobians
from perspex.api.mapping import vmap
from perspex.experimental.sparse.base import JAXSparse
from perspex.experimental.sparse.util import check

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


class _Flat:
    """A function of the numbers in its arguments; the indices of sparse ones stay as they are."""

    def __init__(self, fun: Callable[..., Any], argnums: Any, args: Sequence[Any]) -> None:
        numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
        count = len(args)
        chosen = {operator.index(i) for i in numbers}
        check(
            all(0 <= i < count for i in chosen),
            f"argnums={argnums} must be positions among the {count} positional arguments",
        )
        self.fun = fun
        self.leaves, self.outer = tree.flatten(tuple(args), is_leaf=_is_sparse)
        self.arrays, self.inner = tree.flatten(self.leaves)
        owners = [i for i, x in enumerate(args) for _ in tree.leaves(x, is_leaf=_is_sparse)]
        self.chosen = [i for i, owner in enumerate(owners) if owner in chosen]
        starts, position = [], 0
        for leaf in self.leaves:
            starts.append(position)
            position += len(tree.leaves(leaf))
        # The first part of a sparse array holds its numbers.
        self.argnums = tuple([starts[i] for i in self.chosen])

    def __call__(self, *arrays: Any, **kwargs: Any) -> Any:
        leaves = tree.unflatten(self.inner, arrays)
        return self.fun(*tree.unflatten(self.outer, leaves), **kwargs)

    def gradients(self, found: Sequence[Any]) -> Any:
        """Derivatives of the numbers as arguments of the function."""
        leaves: list[Any] = [None] * len(self.leaves)
        for i, g in zip(self.chosen, found, strict=True):
            leaves[i] = tree.map(lambda x, i=i: self._like(self.leaves[i], x), g)
        whole = [x for x in tree.unflatten(self.outer, leaves) if tree.leaves(x)]
        return whole[0] if len(whole) == 1 else tuple(whole)

    def _like(self, leaf: Any, g: Any) -> Any:
        parts, structure = tree.flatten(leaf)

        def rebuilt(numbers: Any) -> Any:
            return tree.unflatten(structure, [numbers, *parts[1:]])

        for _ in range(g.ndim - getattr(parts[0], "ndim", 0)):
            rebuilt = vmap(rebuilt)
        return rebuilt(g)


def _sparse(
    transform: Callable[..., Any],
    fun: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    options: Any,
) -> Callable[..., Any]:
    # What this says of the function and of `argnums` holds for sparse arguments too.
    plain = transform(fun, argnums=argnums, has_aux=has_aux, **options)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        flat = _Flat(fun, argnums, args)
        derivative = transform(flat, argnums=flat.argnums, has_aux=has_aux, **options)
        out = derivative(*flat.arrays, **kwargs)
        if transform is differentiation.value_and_grad:
            return out[0], flat.gradients(out[1])
        return (flat.gradients(out[0]), out[1]) if has_aux else flat.gradients(out)

    differentiated.__name__ = getattr(plain, "__name__", "differentiated")
    differentiated.__doc__ = plain.__doc__
    return differentiated


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The value of a function and its gradient, with respect to sparse arguments too.

    Args:
      fun: a function of arrays, dense and sparse ones, whose result is a real number.
      argnums: the positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of result and auxiliary output.
      **kwargs: as in `perspex.value_and_grad`.

    Returns:
      A function with the same arguments. The gradient for a sparse argument is a sparse array with
      its indices: the derivatives with respect to the stored elements.

    Raises:
      ValueError: for `argnums` that are no positions of arguments.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.arange(6.0))
    >>> sparse.value_and_grad(lambda x, y: x @ y)(x, jnp.ones(6))
    (Array(15., dtype=float32), BCOO(float32[6], nse=5))
    """
    return _sparse(differentiation.value_and_grad, fun, argnums, has_aux, kwargs)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The gradient of a function, with respect to sparse arguments too.

    Args:
      fun: a function of arrays, dense and sparse ones, whose result is a real number.
      argnums: the positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of result and auxiliary output.
      **kwargs: as in `perspex.grad`.

    Returns:
      A function with the same arguments: see `value_and_grad`.

    Raises:
      ValueError: for `argnums` that are no positions of arguments.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.arange(3.0))
    >>> sparse.grad(lambda x, y: x @ y)(x, jnp.array([5.0, 6.0, 7.0])).data
    Array([6., 7.], dtype=float32)
    """
    return _sparse(differentiation.grad, fun, argnums, has_aux, kwargs)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The Jacobian of a function by forward mode, with respect to sparse arguments too.

    Args:
      fun: a function of arrays, dense and sparse ones, whose result is a dense array.
      argnums: the positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of result and auxiliary output.
      **kwargs: as in `perspex.jacfwd`.

    Returns:
      A function with the same arguments. The Jacobian for a sparse argument is a sparse array; the
      axes of the result are batch axes in front.

    Raises:
      ValueError: for `argnums` that are no positions of arguments.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.jacfwd(lambda m, v: m @ v)(sparse.eye(2), jnp.ones(2)).shape
    (2, 2, 2)
    """
    return _sparse(jacobians.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """The Jacobian of a function by reverse mode, with respect to sparse arguments too.

    Args:
      fun: a function of arrays, dense and sparse ones, whose result is a dense array.
      argnums: the positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of result and auxiliary output.
      **kwargs: as in `perspex.jacrev`.

    Returns:
      A function with the same arguments: see `jacfwd`.

    Raises:
      ValueError: for `argnums` that are no positions of arguments.

    >>> import perspex.numpy as jnp
    >>> from perspex.experimental import sparse
    >>> sparse.jacrev(lambda m, v: m @ v)(sparse.eye(2), jnp.ones(2)).shape
    (2, 2, 2)
    """
    return _sparse(jacobians.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
