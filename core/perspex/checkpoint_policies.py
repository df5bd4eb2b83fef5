"""Which values a checkpointed function stores: policies for `checkpoint(f, policy=...)`.

A policy is called with a primitive, the types of its operands and its params, and says whether the
results are stored for the backward pass. The first four are policies; the others make one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perspex.control.remat import Offloadable as _Offloadable
from perspex.control.remat import Policy as _Policy
from perspex.control.remat import Recompute as _Recompute
from perspex.control.remat import Saveable as _Saveable
from perspex.ops.linear import dot_general as _dot_general
from perspex.ops.names import name_p as _name_p


def everything_saveable(*args: Any, **params: Any) -> bool:
    """Store everything, as if there were no checkpoint.

    Args:
      args: the primitive and the types of its operands.
      params: the params of the equation.

    Returns:
      A boolean.

    Raises:
      Nothing.

    >>> everything_saveable()
    True
    """
    return True


def nothing_saveable(*args: Any, **params: Any) -> bool:
    """Compute everything again from the arguments, as without a policy.

    Args:
      args: the primitive and the types of its operands.
      params: the params of the equation.

    Returns:
      A boolean.

    Raises:
      Nothing.

    >>> nothing_saveable()
    False
    """
    return False


def dots_saveable(prim: Any, *args: Any, **params: Any) -> bool:
    """Store the results of matrix products and convolutions, and compute the rest again.

    Args:
      prim: the primitive.
      args: the types of its operands.
      params: the params of the equation.

    Returns:
      A boolean.

    Raises:
      Nothing.

    >>> import perspex
    >>> from perspex import numpy as pnp
    >>> f = perspex.checkpoint(lambda x: pnp.sin(x @ x).sum(), policy=dots_saveable)
    >>> perspex.grad(f)(pnp.zeros((2, 2))).shape
    (2, 2)
    """
    return prim is _dot_general or prim.name == "conv_general_dilated"


def dots_with_no_batch_dims_saveable(prim: Any, *args: Any, **params: Any) -> bool:
    """Store the results of matrix products without batch axes.

    Those of weights with activations, but not those of activations with each other, as in
    attention, which are large and cheap.

    Args:
      prim: the primitive.
      args: the types of its operands.
      params: the params of the equation.

    Returns:
      A boolean.

    Raises:
      Nothing.

    >>> import perspex
    >>> from perspex import numpy as pnp
    >>> policy = dots_with_no_batch_dims_saveable
    >>> f = perspex.checkpoint(lambda x: pnp.sin(x @ x).sum(), policy=policy)
    >>> perspex.grad(f)(pnp.zeros((2, 2))).shape
    (2, 2)
    """
    if prim is not _dot_general:
        return False
    _, (left, right) = params["dimension_numbers"]
    return not left and not right


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., bool]:
    """Store everything but what `checkpoint_name` gave one of these names.

    The value before it got its name is another one: it is stored if an operation reads it.

    Args:
      names_not_to_save: names that `checkpoint_name` gave.

    Returns:
      A policy.

    Raises:
      Nothing.

    >>> import perspex.numpy as pnp
    >>> policy = save_anything_except_these_names("scores")
    """
    names = frozenset(names_not_to_save)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return prim is not _name_p or params["name"] not in names

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., bool]:
    """Store what `checkpoint_name` named, but under none of these names.

    Args:
      names_not_to_save: names that `checkpoint_name` gave.

    Returns:
      A policy.

    Raises:
      Nothing.

    >>> policy = save_any_names_but_these("scores")
    """
    names = frozenset(names_not_to_save)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return prim is _name_p and params["name"] not in names

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., bool]:
    """Store what `checkpoint_name` gave one of these names, and nothing else.

    Args:
      names_which_can_be_saved: names that `checkpoint_name` gave.

    Returns:
      A policy.

    Raises:
      Nothing.

    >>> import perspex
    >>> from perspex import numpy as pnp
    >>> from perspex.ad_checkpoint import checkpoint_name
    >>> def f(x):
    ...     return pnp.sin(checkpoint_name(pnp.sin(x), "inner"))
    >>> g = perspex.checkpoint(f, policy=save_only_these_names("inner"))
    >>> perspex.grad(g)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    names = frozenset(names_which_can_be_saved)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return prim is _name_p and params["name"] in names

    return policy


def save_from_both_policies(policy_1: _Policy, policy_2: _Policy) -> Callable[..., Any]:
    """Store what one of the two policies stores.

    Args:
      policy_1, policy_2: two policies; the second decides where the first stores nothing.

    Returns:
      A policy.

    Raises:
      Nothing; the policy raises what the two raise.

    >>> policy = save_from_both_policies(dots_saveable, save_only_these_names("inner"))
    """

    def policy(prim: Any, *args: Any, **params: Any) -> Any:
        first = policy_1(prim, *args, **params)
        refused = first is False or first is _Recompute
        return policy_2(prim, *args, **params) if refused else first

    return policy


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """Move the results of matrix products without batch axes to another memory meanwhile.

    Args:
      offload_src: the name of the memory that results come from, `"device"`.
      offload_dst: the name of the memory that they wait in, `"pinned_host"`.

    Returns:
      A policy.

    Raises:
      Nothing.

    >>> policy = offload_dot_with_no_batch_dims("device", "pinned_host")
    """

    def policy(prim: Any, *args: Any, **params: Any) -> Any:
        if dots_with_no_batch_dims_saveable(prim, *args, **params):
            return _Offloadable(offload_src, offload_dst)
        return _Recompute

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Callable[..., Any]:
    """Store what has one of some names, and move what has one of others to another memory.

    Args:
      names_which_can_be_saved, names_which_can_be_offloaded: names of `checkpoint_name`; none of
        them in both.
      offload_src, offload_dst: names of memories, `"device"` and `"pinned_host"`. A program for a
        CPU stores both in its one memory.

    Returns:
      A policy.

    Raises:
      ValueError: for a name in both.

    >>> policy = save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["a"],
    ...     names_which_can_be_offloaded=["b"],
    ...     offload_src="device",
    ...     offload_dst="pinned_host",
    ... )
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "save_and_offload_only_these_names: the names "
            f"{sorted(saved & offloaded)} are both saved and offloaded; choose one"
        )

    def policy(prim: Any, *args: Any, **params: Any) -> Any:
        if prim is _name_p and params["name"] in saved:
            return _Saveable
        if prim is _name_p and params["name"] in offloaded:
            return _Offloadable(offload_src, offload_dst)
        return _Recompute

    return policy
