"""`jax.interpreters.mlir`: rules that write StableHLO, as libraries register and call them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from perspex.as_jax.doors.modules import DEVICE_TO_DEVICE_TYPE as DEVICE_TO_DEVICE_TYPE
from perspex.as_jax.doors.modules import RECV_FROM_HOST_TYPE as RECV_FROM_HOST_TYPE
from perspex.as_jax.doors.modules import SEND_TO_HOST_TYPE as SEND_TO_HOST_TYPE
from perspex.as_jax.doors.modules import AxisContext as AxisContext
from perspex.as_jax.doors.modules import ShardingContext as ShardingContext
from perspex.as_jax.doors.modules import SPMDAxisContext as SPMDAxisContext
from perspex.as_jax.doors.modules import Token as Token
from perspex.as_jax.doors.modules import TokenSet as TokenSet
from perspex.as_jax.doors.modules import merge_mlir_modules as merge_mlir_modules
from perspex.as_jax.doors.modules import token_type as token_type
from perspex.as_jax.doors.primitive import Primitive
from perspex.base.xla import ir as ir
from perspex.hlo import foreign, types
from perspex.hlo.builder import Builder, Module
from perspex.hlo.types import attribute_of as ir_attribute
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.layout.mesh import Mesh as Mesh
from perspex.ops.lowering import inline
from perspex.tracing.staging import stage

__all__ = [
    "AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringRule",
    "LoweringRuleContext", "Mesh", "MeshAxisName", "ModuleContext", "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE", "SPMDAxisContext", "ShardingContext", "Token", "TokenSet", "Value",
    "aval_to_ir_type", "aval_to_ir_types", "core_call_lowering", "custom_call", "dense_bool_array",
    "dense_int_array", "dense_int_elements", "dtype_to_ir_type", "emit_python_callback",
    "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr", "ir", "ir_attribute",
    "ir_constant", "ir_constants", "jaxpr_subcomp", "lower_fun", "lower_jaxpr_to_fun",
    "make_ir_context", "merge_mlir_modules", "module_to_bytecode", "module_to_string",
    "register_constant_handler", "register_lowering", "shape_tensor", "token_type",
    "unflatten_ir_values_like_types",
]  # fmt: skip

Rule = Callable[..., Any]
LoweringRule = Rule
ConstantHandler = Callable[[Any, Any], Any]

_constant_handlers: dict[type, ConstantHandler] = {}
MeshAxisName = Hashable
Value = ir.Value


@dataclasses.dataclass(frozen=True)
class ModuleContext:
    """The module that a rule writes into."""

    builder_module: Module

    @property
    def module(self) -> Any:
        return self.builder_module.module

    @property
    def context(self) -> Any:
        return types.context

    @property
    def ip(self) -> Any:
        return self.builder_module.body

    @property
    def platforms(self) -> tuple[str, ...]:
        return (self.builder_module.platform,)

    @property
    def symbol_table(self) -> Any:
        return ir.SymbolTable(self.module.operation)

    def add_keepalive(self, value: Any) -> None:
        """Keep a value as long as the program."""
        kept = vars(self.builder_module).setdefault("kept", [])
        kept.append(value)

    def replace(self, **changes: Any) -> ModuleContext:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class LoweringRuleContext:
    """What a lowering rule is given: the types of its equation, and where to write."""

    module_context: ModuleContext
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Any
    builder: Builder
    name_stack: str = ""
    tokens_in: Any = None
    tokens_out: Any = None
    platforms: Sequence[str] | None = None
    traceback: Any = None
    const_lowering: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def set_tokens_out(self, tokens: Any) -> None:
        """Nothing: effects keep their order in another way here."""

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    def is_forward_compat(self) -> bool:
        """Whether the program is for an older version."""
        return False


def _context(b: Builder, primitive: Any) -> LoweringRuleContext:
    return LoweringRuleContext(
        ModuleContext(b.module), primitive, list(b.in_avals), list(b.out_avals), b, b.scope
    )


def _written(rule: Rule) -> Rule:
    """A rule of JAX's kind as one that writes with our builder."""

    def write(b: Builder, primitive: Any, *values: Any, **params: Any) -> Any:
        with b.ip, b.loc:
            found = rule(_context(b, primitive), *values, **params)
        if isinstance(found, (ir.Operation, ir.OpView)):
            found = list(found.results)
        if not primitive.multiple_results:
            return found[0] if isinstance(found, (list, tuple)) else found
        return flatten_ir_values(found)

    return write


def register_lowering(
    prim: Any, rule: Rule, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Rule:
    """Say what a primitive is in StableHLO.

    Args:
      prim: the primitive.
      rule: `rule(ctx, *values, **params)` returns the values of the results.
      platform: `"cpu"`, `"gpu"` (or `"cuda"`), `"tpu"`; all that have no rule of their own, if not
        given.
      inline, cacheable: taken for JAX's sake; a rule is written where the equation stands.
    """
    if not isinstance(prim, Primitive):
        raise TypeError(f"register_lowering: {prim!r} is not a primitive")
    names = ("gpu", "cuda") if platform in ("gpu", "cuda") else (platform,)
    lowerings = vars(prim).setdefault("lowerings", {})
    lowerings.update(dict.fromkeys(names, _written(rule)))
    if not hasattr(type(prim), "def_impl"):
        _replace_lower(prim, lowerings)
    return rule


def _replace_lower(prim: Any, lowerings: dict[str | None, Rule]) -> None:
    """Have a primitive of ours ask for the rules that a library has given it."""

    def lower(b: Builder, *values: Any, **params: Any) -> Any:
        rule = lowerings.get(b.platform) or lowerings.get(None)
        if rule is None:
            return type(prim).lower(prim, b, *values, **params)
        return rule(b, prim, *values, **params)

    prim.lower = lower


def _here(ctx: LoweringRuleContext) -> Builder:
    """A builder for the place where the library writes now."""
    b = ctx.builder
    try:
        ip = ir.InsertionPoint.current
    except ValueError:
        return b
    here = Builder(b.module, ip)
    here.loc, here.scope, here.source = b.loc, b.scope, b.source
    return here


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Rule:
    """The rule that writes what `fun(*operands, **params)` does."""

    def rule(ctx: LoweringRuleContext, *values: Any, **params: Any) -> list[Any]:
        def flat(*args: Any) -> Any:
            out = fun(*args, **params)
            return list(out) if multiple_results else [out]

        jaxpr, consts = stage(flat, list(ctx.avals_in), getattr(fun, "__name__", "function"))
        return inline(_here(ctx), jaxpr, consts, values)

    return rule


def jaxpr_subcomp(
    ctx: Any, jaxpr: Any, name_stack: Any, tokens: Any, consts: Sequence[Any], *args: Any,
    **options: Any,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Write a program here: the values of its results, and the tokens, which are unchanged."""
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    if isinstance(ctx, LoweringRuleContext):
        b = _here(ctx)
    else:
        b = Builder(ctx.builder_module, ir.InsertionPoint.current)
    whole = jaxpr.replace(constvars=(), invars=[*jaxpr.constvars, *jaxpr.invars])
    return b.inline(whole, [*flatten_ir_values(consts), *flatten_ir_values(args)]), tokens


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Any, name: str, call_jaxpr: Any, **params: Any
) -> list[Any]:
    """A rule that writes the program in the param `call_jaxpr` as a function, and calls it."""
    closed = call_jaxpr if isinstance(call_jaxpr, ClosedJaxpr) else ClosedJaxpr(call_jaxpr)
    return _here(ctx).call(closed, flatten_ir_values(args), name)


def lower_jaxpr_to_fun(ctx: ModuleContext, name: str, jaxpr: Any, *args: Any, **kw: Any) -> str:
    """The symbol of a function of the module that runs the program."""
    return ctx.builder_module.function(jaxpr, name)


def custom_call(
    call_target_name: str,
    *,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    backend_config: str | bytes | dict[str, Any] | None = None,
    has_side_effect: bool = False,
    result_shapes: Any = None,
    called_computations: Sequence[str] = (),
    api_version: int = 2,
    operand_output_aliases: dict[int, int] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    extra_attributes: dict[str, Any] | None = None,
) -> Any:
    """Emit a call of a function that is registered with XLA; returns the operation.

    `backend_config` is text, or for `api_version` 4 a dictionary of MLIR attributes.
    """
    if result_shapes is not None:
        raise NotImplementedError("mlir.custom_call: results of dynamic shape are not supported")
    return foreign.custom_call(
        call_target_name,
        flatten_ir_values(operands),
        result_types,
        backend_config=backend_config,
        has_side_effect=has_side_effect,
        called_computations=called_computations,
        api_version=api_version,
        operand_output_aliases=operand_output_aliases,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        extra_attributes=extra_attributes,
    )


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    **options: Any,
) -> tuple[list[Any], Any, Any]:
    """Emit a call of a Python function of NumPy arrays: results, token, what must be kept."""

    def call(*args: Any) -> list[Any]:
        return list(callback(*args))

    found = _here(ctx).callback(call, operands, operand_avals, result_avals, has_side_effect)
    return found, token, None


# ---- Types, attributes and constants ------------------------------------------------------------


def aval_to_ir_type(*args: Any) -> Any:
    """The MLIR type of an abstract value; a module context before it is not looked at."""
    return types.tensor_type(args[-1])


def aval_to_ir_types(*args: Any) -> tuple[Any, ...]:
    """The MLIR types that stand for an abstract value: one."""
    return (types.tensor_type(args[-1]),)


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of elements of a dtype."""
    return types.element_type(np.dtype(dtype))


def i32_attr(i: int) -> Any:
    """An integer of 32 bits as an attribute."""
    return types.integer(int(i), 32)


def i64_attr(i: int) -> Any:
    """An integer of 64 bits as an attribute."""
    return types.integer(int(i), 64)


def dense_int_array(xs: Sequence[int]) -> Any:
    """Integers of 64 bits as an array attribute."""
    return types.integers(tuple([int(x) for x in xs]))


def dense_bool_array(xs: Sequence[bool]) -> Any:
    """Booleans as an array attribute."""
    return types.booleans(tuple([bool(x) for x in xs]))


def dense_int_elements(xs: Any) -> Any:
    """Integers of 64 bits as the elements of a tensor."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64), context=types.context)


def ir_constant(val: Any, **options: Any) -> Any:
    """A constant, emitted where the library writes now."""
    handler = next((h for t in type(val).__mro__ if (h := _constant_handlers.get(t))), None)
    if handler is not None:
        return handler(val, options.get("aval"))
    aval = shaped(val)
    value = types.dense(np.asarray(val, aval.dtype), aval)
    made = ir.Operation.create(
        "stablehlo.constant", results=[types.tensor_type(aval)], attributes={"value": value}
    )
    return made.result


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Have `ir_constant` write values of a class by `handler_fun(value, aval)`."""
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, **options: Any) -> Any:
    """The values that stand for a constant: one."""
    return ir_constant(val)


def shape_tensor(ctx: Any, sizes: Sequence[int]) -> Any:
    """The sizes of axes as a tensor."""
    return ir_constant(np.asarray(sizes, np.int32))


def flatten_ir_values(xs: Any) -> list[Any]:
    """Values, and sequences of values, as one list."""
    if isinstance(xs, ir.Value):
        return [xs]
    return [y for x in xs for y in (x if isinstance(x, (tuple, list)) else (x,))]


flatten_ir_types = flatten_ir_values


def unflatten_ir_values_like_types(xs: Any, ys: Sequence[Any]) -> list[Any]:
    """Values in groups like those of their types."""
    found = iter(xs)
    return [
        tuple([next(found) for _ in y]) if isinstance(y, (tuple, list)) else next(found) for y in ys
    ]


def make_ir_context() -> Any:
    """The MLIR context that all modules share."""
    return types.context


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: Any) -> bytes:
    """A module in MLIR's binary form."""
    holder = Module("module")
    holder.module = module
    return holder.bytecode()
