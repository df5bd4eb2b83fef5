"""From a traced function to the module in a file.

The entry point `main` takes, if there are several platforms, the index of the one that it runs on,
and then the arguments that are used. With symbolic shapes it computes the variables from the shapes
of the arguments, checks them, and calls the function with the variables in front.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.base import xla
from perspex.base.xla import ir
from perspex.export.dynamic import SIZE, DynamicBuilder, DynamicModule
from perspex.export.expressions import all_variables
from perspex.export.solving import solve
from perspex.hlo import types
from perspex.hlo.builder import INDEX, PLATFORM_INDEX, Module
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr
from perspex.runtime.keys import KeyArray
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.programs import embed


class Lowered(NamedTuple):
    """A module, the arguments that it takes, and whether it has to be refined before it runs."""

    module: Any
    kept: tuple[int, ...]
    is_refined: bool


def _numbers(value: Any) -> Any:
    return np.asarray(value.base if isinstance(value, KeyArray) else value)


def _program(closed: ClosedJaxpr, keep_unused: bool) -> tuple[Jaxpr, list[bool]]:
    """The program without dead code, with its constants in it, and which arguments it takes."""
    smaller, needed = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    if keep_unused:
        smaller = smaller.replace(invars=closed.jaxpr.invars)
        needed = [True] * len(needed)
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    jaxpr = embed(smaller.replace(constvars=()), [(v, _numbers(x)) for v, x in values.items()])
    return jaxpr, needed


def lower(
    closed: ClosedJaxpr, platforms: Sequence[str], name: str, structure: Any, keep_unused: bool
) -> Lowered:
    """The module of a program for some platforms.

    Raises `NotImplementedError` for operations that cannot be written to a file.
    """
    variables = all_variables([aval.shape for aval in closed.in_avals])
    # The variables are computed from the arguments, so none may go.
    jaxpr, needed = _program(closed, keep_unused or bool(variables) or len(platforms) > 1)
    kept = tuple([i for i, keep in enumerate(needed) if keep])
    texts = []
    for platform in platforms:
        module = _module(name, platform, variables)
        module._function("main", jaxpr, "private" if variables else "public")
        texts.append(module.text())
    if not variables and len(platforms) == 1:
        return Lowered(module.module, kept, False)
    avals = [closed.in_avals[i] for i in kept]
    chosen = platforms[:1] if len(set(texts)) == 1 else platforms
    several = len(platforms) > 1
    return Lowered(_wrapped(jaxpr, name, chosen, several, variables, avals, structure), kept, True)


def _module(name: str, platform: str, variables: Sequence[str]) -> Module:
    if variables:
        return DynamicModule(f"jit_{name}", platform, variables)
    return Module(f"jit_{name}", platform)


def _wrapped(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    several: bool,
    variables: Sequence[str],
    avals: Sequence[ShapedArray],
    structure: Any,
) -> Any:
    """One module with a `main` that chooses by platform and computes the variables.

    It holds a program for each of the `platforms` that differ. With `several`, `main` is given the
    index of the one that it runs on.
    """
    module = DynamicModule(f"jit_{name}", platforms[0], variables)
    symbols = module.for_each(platforms, jaxpr, "_wrapped_jax_export_main")
    inputs = [types.tensor_type(v.aval) for v in jaxpr.invars]
    outputs = [types.tensor_type(v.aval) for v in jaxpr.outvars]
    attributes: list[dict[str, Any]] = [{} for _ in inputs]
    if several:
        inputs.insert(0, types.tensor_type(INDEX))
        attributes.insert(0, PLATFORM_INDEX)
    block = module.entry(inputs, outputs, attributes)
    values = list(block.arguments)
    b = DynamicBuilder(module, ir.InsertionPoint(block), {})
    index = values.pop(0) if several else None
    if variables:
        known = _variables(b, values, avals, structure)
        b.variables = {name: known[name] for name in variables}
    # A conversion is the only use of an argument: refining gives the arguments other types.
    given = [
        b.op("stablehlo.convert", value, aval=aval) if _has_symbols(aval) else value
        for value, aval in zip(values, avals, strict=True)
    ]
    out_avals = [v.aval for v in jaxpr.outvars]
    b.terminate("func.return", b.chosen(symbols, index, given, out_avals))
    return module.module


def _placeholder(inputs: dict[str, tuple[int, Any]], size: Any) -> str:
    """What stands for a number in a message, which is one of `inputs`."""
    return f"{{{inputs.setdefault(str(size), (len(inputs), size))[0]}}}"


def _has_symbols(aval: ShapedArray) -> bool:
    return bool(all_variables([aval.shape]))


def _variables(
    b: DynamicBuilder, values: Sequence[Any], avals: Sequence[ShapedArray], structure: Any
) -> dict[str, Any]:
    """Compute the variables from the shapes of the arguments, and check these."""
    solution = solve(avals, structure)
    b.variables = {
        name: b.op(
            "stablehlo.get_dimension_size",
            values[i],
            attributes={"dimension": types.integer(k)},
            aval=SIZE,
        )
        for name, (i, k) in solution.places.items()
    }
    for check in solution.checks:
        inputs: dict[str, tuple[int, Any]] = {}
        text = check.text(functools.partial(_placeholder, inputs))
        holds = b.compare(
            "EQ" if check.is_equality else "GE", b.size(check.left), b.size(check.right), SIZE
        )
        b.ops(
            "stablehlo.custom_call",
            [holds, *[b.size(x) for _, x in inputs.values()]],
            [],
            {
                "call_target_name": types.string("shape_assertion"),
                "api_version": types.integer(2, 32),
                "has_side_effect": types.boolean(True),
                "error_message": types.string(text),
            },
        )
    return {name: b.size(x) for name, x in solution.variables.items()}


def written(module: Any, is_refined: bool) -> bytes:
    """The module in the form that other versions read."""
    module.operation.attributes["jax.uses_shape_polymorphism"] = types.boolean(is_refined)
    return xla.portable(module)
