"""Optimizers as three functions: `jax.example_libraries.optimizers`.

They are for examples; Optax has the ones to train with. An optimizer is `(init, update,
get_params)`: `init(params)` makes a state, `update(i, grads, state)` the next one at iteration `i`,
and `get_params(state)` returns the parameters in it. States are pytrees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import perspex.numpy as pnp
from perspex import tree
from perspex.tree_util import register_pytree_node

__all__ = [
    "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "Params", "ParamsFn", "Schedule",
    "State", "Step", "UpdateFn", "Updates", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov",
    "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

Params: TypeAlias = Any
State: TypeAlias = Any
Updates: TypeAlias = Any
Step = int
Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The states of all parameters, flat: the numbers, and the two levels of their structure."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda trees, children: OptimizerState(*children, *trees),
)

InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def _states(packed: OptimizerState) -> list[Any]:
    pairs = zip(packed.subtree_defs, packed.packed_state, strict=True)
    return [tree.unflatten(structure, leaves) for structure, leaves in pairs]


def _packed(states: Sequence[Any], structure: Any) -> OptimizerState:
    flat = [tree.flatten(state) for state in states]
    return OptimizerState(
        tuple([leaves for leaves, _ in flat]), structure, tuple([inner for _, inner in flat])
    )


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Make an optimizer of single arrays one of pytrees.

    Args:
      opt_maker: returns `(init, update, get_params)` for one array.

    Returns:
      A function with the same parameters, which returns an `Optimizer`. Its `update` raises
      `TypeError` for gradients of another structure than the parameters.

    Raises:
      Nothing.

    >>> @optimizer
    ... def plain(rate):
    ...     return lambda x: x, lambda i, g, x: x - rate * g, lambda x: x
    >>> init, update, get_params = plain(0.5)
    >>> get_params(update(0, {"w": 2.0}, init({"w": 1.0})))
    {'w': 0.0}
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params: Any) -> OptimizerState:
            leaves, structure = tree.flatten(params)
            return _packed([init(leaf) for leaf in leaves], structure)

        def update_tree(i: Any, grads: Any, packed: OptimizerState) -> OptimizerState:
            leaves, structure = tree.flatten(grads)
            if structure != packed.tree_def:
                raise TypeError(
                    f"the gradients have the structure {structure}, but the optimizer was "
                    f"initialized with parameters of structure {packed.tree_def}"
                )
            states = _states(packed)
            found = _packed(
                [update(i, g, state) for g, state in zip(leaves, states, strict=True)], structure
            )
            if found.subtree_defs != packed.subtree_defs:
                raise TypeError(
                    f"`update` of the optimizer returned states of structure {found.subtree_defs} "
                    f"for states of structure {packed.subtree_defs}"
                )
            return found

        def params_tree(packed: OptimizerState) -> Any:
            return tree.unflatten(packed.tree_def, [get_params(s) for s in _states(packed)])

        return Optimizer(init_tree, update_tree, params_tree)

    return make


# ---- Schedules ----------------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """A schedule that always gives `step_size`."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """A schedule that falls by `decay_rate` in `decay_steps`."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """A schedule that falls as the inverse of the time; with `staircase` in steps."""

    def schedule(i: Any) -> Any:
        elapsed = pnp.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * elapsed)

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """A schedule that falls to `final_step_size` in `decay_steps` and stays there."""

    def schedule(step_num: Any) -> Any:
        rest = 1 - pnp.minimum(step_num, decay_steps) / decay_steps
        return final_step_size + (step_size - final_step_size) * rest**power

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """A schedule that gives `values[k]` after `k` of the boundaries.

    Raises `ValueError` unless both are sequences, of boundaries one fewer.
    """
    edges, steps = pnp.array(boundaries), pnp.array(values)
    if edges.ndim != 1 or steps.ndim != 1 or len(edges) != len(steps) - 1:
        raise ValueError(
            "piecewise_constant takes sequences, and one boundary fewer than values; got shapes "
            f"{edges.shape} and {steps.shape}"
        )
    return lambda i: steps[pnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule of a number or of a schedule. Raises `TypeError` for anything else."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if pnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size is a number or a function of the iteration, got {scalar_or_schedule!r}"
    )


# ---- Optimizers ---------------------------------------------------------------------------------


def _first(state: Any) -> Any:
    return state[0]


def _with_zeros(count: int) -> Callable[[Any], Any]:
    """`init` for a state of the parameter and `count` arrays of zeros like it."""
    return lambda x: (x, *[pnp.zeros_like(x) for _ in range(count)])


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent.

    Args:
      step_size: a number, or a function of the iteration.

    Returns:
      An `Optimizer`.

    >>> init, update, get_params = sgd(0.1)
    >>> print(get_params(update(0, 2.0, init(1.0))))
    0.8
    """
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with momentum.

    Args:
      step_size: a number, or a function of the iteration.
      mass: how much of the velocity stays.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum.

    Args:
      step_size: a number, or a function of the iteration.
      mass: how much of the velocity stays.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (g + mass * velocity), velocity

    return _with_zeros(1), update, _first


def _inverse_root(x: Any) -> Any:
    return pnp.where(x > 0, 1.0 / pnp.sqrt(x), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """AdaGrad: http://www.jmlr.org/papers/volume12/duchi11a/duchi11a.pdf

    Args:
      step_size: a number, or a function of the iteration.
      momentum: how much of the mean of gradients stays.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + g * g
        mean = momentum * mean + (1.0 - momentum) * (g * _inverse_root(squares))
        return x - rate(i) * mean, squares, mean

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp.

    Args:
      step_size: a number, or a function of the iteration.
      gamma: how much of the mean of squares stays.
      eps: added below the root.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = gamma * squares + (1.0 - gamma) * g * g
        return x - rate(i) * g / pnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """RMSProp with momentum.

    Args:
      step_size: a number, or a function of the iteration.
      gamma: how much of the mean of squares stays.
      eps: added below the root.
      momentum: how much of the velocity stays.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = gamma * squares + (1.0 - gamma) * g * g
        velocity = momentum * velocity + rate(i) * g / pnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam: https://arxiv.org/abs/1412.6980

    Args:
      step_size: a number, or a function of the iteration.
      b1, b2: how much of the means of gradients and of their squares stays.
      eps: added to the root.

    Returns:
      An `Optimizer`.

    >>> init, update, get_params = adam(0.1)
    >>> round(float(get_params(update(0, 2.0, init(1.0)))), 3)
    0.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = b1 * mean + (1 - b1) * g
        squares = b2 * squares + (1 - b2) * g * g
        fair_mean = mean / (1 - pnp.asarray(b1, mean.dtype) ** (i + 1))
        fair_squares = squares / (1 - pnp.asarray(b2, mean.dtype) ** (i + 1))
        return x - rate(i) * fair_mean / (pnp.sqrt(fair_squares) + eps), mean, squares

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam with the infinity norm: https://arxiv.org/abs/1412.6980

    Args:
      step_size: a number, or a function of the iteration.
      b1, b2: how much of the mean of gradients and of their largest size stays.
      eps: added to the size.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = b1 * mean + (1 - b1) * g
        largest = pnp.maximum(b2 * largest, pnp.abs(g))
        fair = rate(i) / (1 - pnp.asarray(b1, mean.dtype) ** (i + 1))
        return x - fair * mean / (largest + eps), mean, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3, which keeps one number for each index of each axis: https://arxiv.org/abs/1901.11150

    Args:
      step_size: a number, or a function of the iteration.
      momentum: how much of the mean of gradients stays.

    Returns:
      An `Optimizer`.
    """
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        shape = pnp.shape(x)
        x = pnp.atleast_1d(x)
        return x, pnp.zeros_like(x), [pnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, bounds, shape = state
        g = pnp.reshape(g, x.shape)
        axes = range(x.ndim)
        spread = [
            pnp.expand_dims(v, tuple([k for k in axes if k != axis]))
            for axis, v in enumerate(bounds)
        ]
        total = functools.reduce(pnp.minimum, spread) + g * g
        mean = momentum * mean + (1.0 - momentum) * (g * _inverse_root(total))
        bounds = [total.max(tuple([k for k in axes if k != axis])) for axis in axes]
        return x - rate(i) * mean, mean, bounds, shape

    return init, update, lambda state: pnp.reshape(state[0], state[3])


# ---- Gradients, and states as trees -------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all numbers in a pytree.

    >>> print(l2_norm([3.0, 4.0]))
    5.0
    """
    return pnp.sqrt(sum([pnp.vdot(x, x) for x in _leaves(tree)]))


_leaves = tree.leaves


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients, scaled down to the norm `max_norm` if theirs is larger.

    >>> [float(g) for g in clip_grads([30.0, 40.0], 5.0)]
    [3.0, 4.0]
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: pnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A leaf of a pytree that holds another one."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as a pytree like the parameters, each with a `JoinPoint` that holds its state.

    >>> init, _, _ = sgd(0.1)
    >>> unpack_optimizer_state(init({"w": 1.0}))["w"].subtree
    1.0
    """
    return tree.unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state for a pytree as `unpack_optimizer_state` makes it.

    Raises `TypeError` for leaves that are not `JoinPoint`s.

    >>> init, _, get_params = sgd(0.1)
    >>> get_params(pack_optimizer_state(unpack_optimizer_state(init({"w": 1.0}))))
    {'w': 1.0}
    """
    points, structure = tree.flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError("pack_optimizer_state takes a pytree whose leaves are JoinPoints")
    return _packed([point.subtree for point in points], structure)
