"""Functions that say themselves how they are cut over devices.

    @custom_partitioning
    def product(a, b): ...

    product.def_partition(partition, sharding_rule="i j, j k -> i k")

Shardy decides with the rule how operands and results lie, and `partition` gives the program that
each device runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from perspex import tree
from perspex.base.tree_paths import PyTree
from perspex.errors import UnexpectedTracerError
from perspex.layout.sharding_rules import BATCHING as BATCHING
from perspex.layout.sharding_rules import ArrayMapping as ArrayMapping
from perspex.layout.sharding_rules import CompoundFactor as CompoundFactor
from perspex.layout.sharding_rules import SdyShardingRule as SdyShardingRule
from perspex.layout.sharding_rules import parsed
from perspex.rules.partitioning import custom_partitioning_p as custom_partitioning_p
from perspex.tracing.staging import stage_closed
from perspex.tracing.trace import Tracer, typeof

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]


class custom_partitioning:  # noqa: N801 - the name in JAX
    """A function of arrays whose author says how devices share its work.

    Args:
      fun: takes and returns pytrees of arrays. It is what runs on one device.
      static_argnums: positions of arguments that are no arrays.

    It has neither a derivative nor a rule for `vmap`, as in JAX.

    >>> import perspex, perspex.numpy as pnp
    >>> @custom_partitioning
    ... def double(x):
    ...     return x * 2
    >>> def partition(mesh, args, result):
    ...     return mesh, lambda x: x * 2, result.sharding, (args[0].sharding,)
    >>> _ = double.def_partition(partition, sharding_rule="i -> i")
    >>> perspex.jit(double)(pnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        self.fun = fun
        self.static_argnums = static_argnums
        self.partition: Callable[..., Any] | None = None
        self.decode_shardings = True
        self.sharding_rule: Any = None
        self.propagates = False
        functools.update_wrapper(self, fun)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["fun"], name)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., Any] | None = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Say how the work is shared.

        Args:
          partition: `partition(*static, mesh, arguments, result)`, where the last two are pytrees
            of `ShapeDtypeStruct` with the shardings that Shardy found. It returns the mesh, the
            function that each device runs on its parts, in which collectives may name axes of the
            mesh, the shardings of the results, and those of the arguments. It may change them:
            then the devices exchange parts.
          infer_sharding_from_operands, propagate_user_sharding: for an older partitioner.
          decode_shardings: shardings are always `NamedSharding`s here.
          sharding_rule: a rule, its text, or a function of the mesh and the MLIR types of arguments
            and results that returns one; `None` where Shardy should know nothing.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: as for
            `SdyShardingRule`, for a text.

        Returns:
          `partition`.

        Raises:
          ValueError: for a text that is no rule, or options beside a rule that is not a text.
        """
        self.partition = partition
        self.propagates = bool(infer_sharding_from_operands or propagate_user_sharding)
        self.decode_shardings = decode_shardings
        special = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        if isinstance(sharding_rule, str):
            options: dict[str, Any] = {**special, **factor_sizes}
            self.sharding_rule = parsed(sharding_rule, **options)
            return partition
        unknown = {**factor_sizes, **{kind: names for kind, names in special.items() if names}}
        if unknown:
            raise ValueError(f"Unknown keyword arguments: {unknown}")
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> PyTree:
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError("keyword arguments could not be resolved to positions")
        args = bound.args
        static = tuple([args[i] for i in self.static_argnums])
        if any(isinstance(leaf, Tracer) for leaf in tree.leaves(static)):
            raise UnexpectedTracerError(
                "a traced value was passed to a custom_partitioning function in a position that "
                "static_argnums names; pass a value of Python there"
            )
        if self.sharding_rule is None and self.propagates:
            raise NotImplementedError(
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are "
                "provided. Need to provide sharding_rule to migrate to Shardy."
            )
        dynamic = [i for i in range(len(args)) if i not in self.static_argnums]
        leaves, in_tree = tree.flatten(tuple([args[i] for i in dynamic]))
        out_tree = None

        def flat(*arrays: Any) -> list[Any]:
            nonlocal out_tree
            given = list(args)
            for i, value in zip(dynamic, tree.unflatten(in_tree, arrays), strict=True):
                given[i] = value
            outs, out_tree = tree.flatten(self.fun(*given))
            return outs

        call, consts = stage_closed(flat, [typeof(leaf) for leaf in leaves], self.fun.__name__)
        if consts:
            raise ValueError(
                f"`{self.fun.__name__}` closes over arrays, and a custom_partitioning function "
                "must not, because nobody says how they are cut; pass them as arguments"
            )
        outs = custom_partitioning_p(
            *leaves,
            call=call,
            partition=self.partition,
            propagate_user_sharding=None,
            infer_sharding_from_operands=None,
            decode_shardings=self.decode_shardings,
            sharding_rule=self.sharding_rule,
            in_tree=in_tree,
            out_tree=out_tree,
            static_args=static,
        )
        return tree.unflatten(out_tree, outs)
