"""Functions that say themselves how they are cut over devices: the primitive behind
`experimental.custom_partitioning`.

Lowered for several devices the function is a call that Shardy cuts as its rule says. XLA's
partitioner then calls back, and is given the program that each device runs. Everywhere else, on one
device, in `shard_map` and outside of programs, the call is the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from perspex import tree
from perspex.api.shapes import ShapeDtypeStruct, make_jaxpr
from perspex.base import xla
from perspex.base.xla import ir
from perspex.hlo import foreign, types
from perspex.hlo.builder import Module
from perspex.hlo.manual import Manual
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.layout.named import named
from perspex.layout.sharding_rules import SdyShardingRule, in_program, parsed
from perspex.runtime.placement import Spread
from perspex.sharding import Mesh, NamedSharding, PartitionSpec
from perspex.tracing.primitive import Primitive
from perspex.tracing.staging import eval_jaxpr

_TARGET = "CustomSPMDPartitioning"


class CustomPartitioning(Primitive):
    """A call of the program `call`, with what its author says about its parts."""

    name = "custom_partitioning"
    multiple_results = True
    on_host = True

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep the functions alive.
        return self.fresh_type(avals, params)

    def type(self, *avals: ShapedArray, call: ClosedJaxpr, **params: Any) -> Any:
        return tuple(call.out_avals)

    def evaluate(self, *operands: Any, call: ClosedJaxpr, **params: Any) -> Any:
        return eval_jaxpr(call.jaxpr, call.consts, *operands)

    def lower(self, b: Any, *values: Any, **params: Any) -> Any:
        place, call = b.module.place, params["call"]
        is_manual = b.module.manual is not None and b.module.manual.is_whole
        if is_manual or place.__class__ is not Spread or place.mesh.size == 1:
            return b.call(call, values, self.name)
        _register()
        request = _Request(place.mesh, b.platform, params)
        b.module.asked.append(request)
        _requests[request.key] = request
        attributes = {}
        if params["sharding_rule"] is not None:
            rule = request.rule([v.type for v in values], list(map(types.tensor_type, b.out_avals)))
            shapes = [[aval.shape for aval in avals] for avals in (b.in_avals, b.out_avals)]
            attributes["sdy.sharding_rule"] = types.attribute(in_program(rule, *shapes))
        made = foreign.custom_call(
            _TARGET,
            values,
            list(map(types.tensor_type, b.out_avals)),
            backend_config=request.key,
            api_version=2,
            extra_attributes=attributes,
            ip=b.ip,
            loc=b.loc,
        )
        try:
            made.verify()
        except ir.MLIRError as error:
            raise ValueError(f"sharding_rule {params['sharding_rule']}: {error}") from None
        return list(made.results)

    def missing(self, rule: str) -> Exception:
        what = {"jvp": "Differentiation", "batch": "Batching"}.get(rule)
        if what is None:
            return super().missing(rule)
        return NotImplementedError(
            f"{what} rule for 'custom_partitioning' not implemented; give the function one with "
            "perspex.custom_jvp, perspex.custom_vjp or perspex.custom_batching.custom_vmap"
        )


class _Request:
    """What the partitioner needs to know of one call in a program."""

    def __init__(self, mesh: Mesh, platform: str, params: dict[str, Any]) -> None:
        self.key = str(id(self)).encode()
        self.mesh = mesh
        self.platform = platform
        self.params = params
        self.static: Sequence[Any] = params["static_args"]

    def rule(self, operands: Sequence[Any], results: Sequence[Any]) -> SdyShardingRule:
        """The rule for operands and results of these MLIR types."""
        given: Any = self.params["sharding_rule"]
        if isinstance(given, SdyShardingRule):
            return given
        given, options = given(*self.static, self.mesh, operands, results), {}
        if isinstance(given, (list, tuple)) and len(given) == 2:
            given, options = given
        if isinstance(given, str):
            return parsed(given, **options)
        if not isinstance(given, SdyShardingRule):
            raise ValueError(
                "sharding_rule callable must produce either an SdyShardingRule object or an "
                f"Einsum-like notation string, got a value of type {type(given).__name__}"
            )
        return given

    def shaped(self, structure: Any, shapes: Sequence[Any], shardings: Sequence[Any]) -> Any:
        """XLA's shapes and shardings as a pytree of types."""
        leaves = []
        for shape, sharding in zip(shapes, shardings, strict=True):
            sizes = tuple(shape.dimensions())
            lies = None if sharding is None else _named(sharding, self.mesh, len(sizes))
            leaves.append(ShapeDtypeStruct(sizes, shape.numpy_dtype(), sharding=lies))
        return tree.unflatten(structure, leaves)

    def partition(
        self,
        operands: Sequence[Any],
        cuts: Sequence[Any],
        results: Sequence[Any],
        out: Sequence[Any],
    ) -> tuple[bytes, list[Any], list[Any]]:
        """The program of each device, and how operands and results are cut for it."""
        in_tree, out_tree = self.params["in_tree"], self.params["out_tree"]
        mesh, lower, out_shardings, in_shardings = self.params["partition"](
            *self.static,
            self.mesh,
            self.shaped(in_tree, operands, cuts),
            self.shaped(out_tree, results, out),
        )
        cuts = _in_hlo(in_tree, in_shardings, operands)
        out = _in_hlo(out_tree, out_shardings, results)
        given, wanted = [
            [_part(shape, cut) for shape, cut in zip(shapes, found, strict=True)]
            for shapes, found in ((operands, cuts), (results, out))
        ]
        sizes = dict(mesh.shape)
        program = make_jaxpr(lower, axis_env=list(sizes.items()))(*tree.unflatten(in_tree, given))
        made = [(aval.shape, aval.dtype) for aval in program.out_avals]
        if made != [(part.shape, part.dtype) for part in wanted]:
            raise ValueError(
                f"Mismatch in result shapes. {program.out_avals} vs {wanted}: the function that "
                "`partition` returns must give the parts of one device"
            )
        module = Module("partitioned", self.platform)
        module.manual = Manual(sizes, frozenset(sizes), {})
        jaxpr = program.jaxpr
        whole = jaxpr.replace(constvars=(), invars=[*jaxpr.constvars, *jaxpr.invars])
        if program.consts:
            raise ValueError(
                "the function that `partition` returns closes over arrays; make them from NumPy "
                "arrays or numbers inside of it"
            )
        module.main(whole)
        return module.bytecode(), cuts, out


def _in_hlo(structure: Any, shardings: Any, shapes: Sequence[Any]) -> list[Any]:
    """The shardings that a user's function returned, as XLA has them."""
    leaves = tree.broadcast_prefix(
        shardings, tree.unflatten(structure, list(shapes)), name="custom_partitioning"
    )
    for leaf in leaves:
        if not isinstance(leaf, NamedSharding):
            raise ValueError(f"Custom Partitioning rules must return Sharding, got {leaf!r}.")
    return [
        leaf._to_xla_hlo_sharding(len(shape.dimensions()))
        for leaf, shape in zip(leaves, shapes, strict=True)
    ]


def _named(sharding: Any, mesh: Mesh, ndim: int) -> NamedSharding:
    """XLA's sharding, with an entry of the spec for each axis of the array."""
    found = named(sharding, [mesh], ndim)
    spec = [*found.spec, *[None] * (ndim - len(found.spec))]
    return NamedSharding(found.mesh, PartitionSpec(*spec))


def _part(shape: Any, cut: Any) -> ShapeDtypeStruct:
    """The part of one device."""
    tile = cut.tile(shape)
    return ShapeDtypeStruct(tuple(tile.dimensions()), tile.numpy_dtype())


_requests: WeakValueDictionary[bytes, _Request] = WeakValueDictionary()
_is_registered = False


def _register() -> None:
    """Tell XLA whom it may ask, once."""
    global _is_registered
    if not _is_registered:
        _is_registered = True
        xla.register_custom_call_partitioner(
            _TARGET, _keep, _partition, _refuse, can_side_effecting_have_replicated_sharding=True
        )


def _keep(sharding: Any, shape: Any, key: bytes) -> Any:
    return sharding


def _refuse(*args: Any) -> Any:
    raise NotImplementedError("Shardy finds shardings with rules: pass sharding_rule")


def _partition(
    operands: Sequence[Any], cuts: Sequence[Any], result: Any, out: Any, key: bytes
) -> tuple[bytes, list[Any], Any]:
    """What XLA's partitioner calls."""
    several = result.is_tuple()
    results = result.tuple_shapes() if several else [result]
    shardings = out.tuple_elements() if several else [out]
    code, cuts, found = _requests[key].partition(operands, cuts, results, shardings)
    if not several:
        return code, cuts, found[0]
    return code, cuts, xla.HloSharding.tuple_sharding(result, found)


custom_partitioning_p = CustomPartitioning()
