"""Calls of exported functions, in traced functions and outside of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from perspex import tree
from perspex.base import xla
from perspex.base.dimensions import is_static
from perspex.base.xla import ir
from perspex.errors import JaxRuntimeError
from perspex.export.checks import DisabledSafetyCheck, called
from perspex.export.solving import argument_path, check_statically, evaluated, solve
from perspex.hlo import lapack, types
from perspex.ir.avals import ShapedArray
from perspex.rules.custom_vjp import custom_vjp
from perspex.tracing.primitive import Primitive


class CallExported(Primitive):
    """A call of the exported function `exported`."""

    name = "call_exported"
    multiple_results = True
    lowers_keys = True

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        # Not cached: the key would keep every exported function alive.
        return self.type(*avals, **params)

    def type(self, *avals: ShapedArray, exported: Any) -> tuple[ShapedArray, ...]:
        structure = exported.in_tree
        for i, (wanted, given) in enumerate(zip(exported.in_avals, avals, strict=True)):
            _check_argument(exported.fun_name, argument_path(structure, i), wanted, given)
        solution = solve(exported.in_avals, structure)
        sizes = {name: avals[i].shape[k] for name, (i, k) in solution.places.items()}
        values = check_statically(solution, sizes)
        return tuple(
            [
                aval.update(shape=tuple([evaluated(n, values) for n in aval.shape]))
                for aval in exported.out_avals
            ]
        )

    def lower(self, b: Any, *values: Any, exported: Any) -> list[Any]:
        platforms = exported.platforms
        if b.platform in platforms:
            index = platforms.index(b.platform)
        elif DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
            index = 0
        else:
            raise ValueError(
                f"Function '{exported.fun_name}' was exported for platforms '{platforms}' but it "
                f"is used on '{b.platform}'. Export it for this platform too, or with "
                "disabled_checks=[export.DisabledSafetyCheck.platform()]"
            )
        if exported.nr_devices != 1:
            raise ValueError(
                f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and "
                "is called on one; Perspex calls exported functions of one device"
            )
        in_avals = [aval.physical() for aval in b.in_avals]
        out_avals = [aval.physical() for aval in b.out_avals]
        module = xla.read_portable(exported.mlir_module_serialized, types.context)
        main = _functions(module)["main"]
        needed = ir.FunctionType(main.attributes["function_type"].value)
        kept = exported.module_kept_var_idx
        given = [values[i] for i in kept]
        avals = [in_avals[i] for i in kept]
        if all([is_static(aval.shape) for aval in (*in_avals, *out_avals)]):
            if exported.uses_global_constants:
                platform = index if len(platforms) > 1 else None
                module = _refined(exported.fun_name, module, platform, avals, out_avals)
        else:
            given = [
                _converted(b, value, kind)
                for value, kind in zip(
                    given, list(needed.inputs)[len(platforms) > 1 :], strict=True
                )
            ]
            if len(platforms) > 1:
                given.insert(0, b.constant(index, ShapedArray((), "int32")))
        if b.platform == "cpu" and any(name.startswith("lapack_") for name in called(module)):
            lapack.register()
        symbol = merge(b.module, module, f"call_exported_{exported.fun_name}")
        results = ir.FunctionType(
            _functions(b.module.module)[symbol].attributes["function_type"].value
        ).results
        call = ir.Operation.create(
            "func.call",
            results=list(results),
            operands=given,
            attributes={"callee": types.symbol(symbol)},
            ip=b.ip,
            loc=b.loc,
        )
        return [
            _converted(b, value, types.tensor_type(aval))
            for value, aval in zip(call.results, out_avals, strict=True)
        ]

    def batch(self, axis_size: int, operands: Any, axes: Any, *, exported: Any) -> Any:
        raise NotImplementedError(
            f"the exported function `{exported.fun_name}` has no batch rule, because it is a "
            "finished program. Export the batched function, or call it in a loop: "
            "lax.map(exported.call, xs)"
        )

    def jvp(self, primals: Any, tangents: Any, *, exported: Any) -> Any:
        raise NotImplementedError(
            f"the exported function `{exported.fun_name}` has no forward-mode derivative; use "
            "reverse mode (grad, vjp), with `serialize(vjp_order=1)` if it comes from a file"
        )


call_exported = CallExported()


def _check_argument(name: str, path: str, wanted: ShapedArray, given: ShapedArray) -> None:
    called_with = f"expected {wanted.shape} and called with {given.shape}"
    if wanted.ndim != given.ndim:
        raise ValueError(f"Rank mismatch for {path} of `{name}`: {called_with}")
    if wanted.dtype != given.dtype:
        raise ValueError(
            f"Dtype mismatch for {path} of `{name}`: expected {wanted.dtype} and called with "
            f"{given.dtype}; convert it with astype"
        )
    for k, (n, m) in enumerate(zip(wanted.shape, given.shape, strict=True)):
        if is_static((n,)) and n != m:
            raise ValueError(
                f"Shape mismatch for {path}.shape[{k}] of `{name}` (expected same constant): "
                f"{called_with}"
            )


def _converted(b: Any, value: Any, kind: Any) -> Any:
    if value.type == kind:
        return value
    return ir.Operation.create(
        "stablehlo.convert", results=[kind], operands=[value], ip=b.ip, loc=b.loc
    ).result


def _functions(module: Any) -> dict[str, Any]:
    return {op.attributes["sym_name"].value: op.operation for op in module.body.operations}


def _refined(
    name: str,
    module: Any,
    platform: int | None,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
) -> Any:
    """The module with the shapes that it is called with, and the index of the platform."""
    functions = _functions(module)
    main = functions["main"]
    table = ir.SymbolTable(module.operation)
    inner = "_exported_main"
    while inner in functions:
        inner += "_"
    table.set_symbol_name(main.opview, inner)
    main.attributes["sym_visibility"] = types.string("private")
    kind = ir.FunctionType(main.attributes["function_type"].value)
    inputs = [types.tensor_type(aval) for aval in avals]
    outputs = [types.tensor_type(aval) for aval in outs]
    signature = ir.FunctionType.get(inputs, outputs, types.context)
    entry = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": types.string("main"),
            "sym_visibility": types.string("public"),
            "function_type": ir.TypeAttr.get(signature, types.context),
        },
        regions=1,
        ip=ir.InsertionPoint(module.body),
        loc=types.unknown,
    )
    block = entry.regions[0].blocks.append(*inputs, arg_locs=[types.unknown] * len(inputs))
    b = _Place(ir.InsertionPoint(block))
    wanted = list(kind.inputs)
    given = list(block.arguments)
    if platform is not None:
        number = ir.IntegerAttr.get(wanted[0].element_type, platform)
        value = ir.DenseElementsAttr.get_splat(wanted[0], number)
        constant = ir.Operation.create(
            "stablehlo.constant",
            results=[wanted[0]],
            attributes={"value": value},
            ip=b.ip,
            loc=b.loc,
        )
        given.insert(0, constant.result)
    operands = [_converted(b, x, kind) for x, kind in zip(given, wanted, strict=True)]
    call = ir.Operation.create(
        "func.call",
        results=list(kind.results),
        operands=operands,
        attributes={"callee": types.symbol(inner)},
        ip=b.ip,
        loc=b.loc,
    )
    results = [_converted(b, x, kind) for x, kind in zip(call.results, outputs, strict=True)]
    ir.Operation.create("func.return", operands=results, ip=b.ip, loc=b.loc)
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    try:
        code = xla.refined(out.getvalue())
    except JaxRuntimeError as error:
        shapes = ", ".join([aval.str_short() for aval in avals])
        raise ValueError(
            f"the exported function `{name}` cannot be called with arguments of the types "
            f"{shapes}: its program does not allow these shapes. XLA says: {error}"
        ) from None
    return ir.Module.parse(code, types.context)


class _Place:
    """Where operations are written."""

    def __init__(self, ip: Any) -> None:
        self.ip, self.loc = ip, types.unknown


def merge(target: Any, module: Any, name: str) -> str:
    """Move the functions of `module` into the module under construction `target`.

    Returns the symbol there of its `main`, which is called `name` where that is free.
    """
    table = ir.SymbolTable(module.operation)
    functions = _functions(module)
    renamed = {}
    for old in functions:
        new = target._fresh(name if old == "main" else old)
        while new != old and new in functions:
            new = target._fresh(new)
        renamed[old] = new
    for old, new in renamed.items():
        if old != new:
            table.set_symbol_name(functions[old].opview, new)
            for op in module.body.operations:
                ir.SymbolTable.replace_all_symbol_uses(old, new, op.operation)
        functions[old].attributes["sym_visibility"] = types.string("private")
    for op in list(module.body.operations):
        target.module.body.append(op)
    return renamed["main"]


def caller(exported: Any) -> Callable[..., Any]:
    """The function that calls an exported one, with its derivative."""

    @custom_vjp
    def flat(*leaves: Any) -> Any:
        return tuple(call_exported(*leaves, exported=exported))

    def forward(*leaves: Any) -> Any:
        return flat(*leaves), leaves

    def backward(leaves: Any, cts: Any) -> Any:
        return tuple(caller_of_leaves(exported.vjp())(*leaves, *cts))

    flat.defvjp(forward, backward)

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        if structure != exported.in_tree:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{exported.fun_name}' was exported: it was exported for "
                f"{exported.in_tree} and called with {structure}"
            )
        return tree.unflatten(exported.out_tree, flat(*leaves))

    return call


def caller_of_leaves(exported: Any) -> Callable[..., Any]:
    """The function of the flat arguments that returns the flat results."""
    call = caller(exported)

    def flat(*leaves: Any) -> Any:
        args, kwargs = tree.unflatten(exported.in_tree, leaves)
        return tree.leaves(call(*args, **kwargs))

    return flat
