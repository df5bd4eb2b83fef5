"""The registries of rules, as views of our primitives.

To write `registry[p] = rule` sets a method of the primitive `p`; to read `registry[p]` gives the
method, with JAX's conventions. Each registry is a pair of translations, one for each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

from perspex.as_jax.doors import zeros
from perspex.tracing import primitive as ours
from perspex.tracing.axes import Axis
from perspex.tracing.trace import typeof

Rule = Callable[..., Any]


class AxisData(NamedTuple):
    """The axis of a batch, as the rules of `fancy_primitive_batchers` are given it."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


class Registry(MutableMapping[Any, Rule]):
    """Rules by primitive.

    `method` is the name of ours; `put(p, rule)` gives our form of JAX's rule, and `get(p, rule)`
    JAX's form of ours. `attributes` are set on a primitive that is given such a rule.
    """

    def __init__(
        self,
        method: str,
        put: Callable[[Any, Rule], Rule],
        get: Callable[[Any, Rule], Rule],
        **attributes: Any,
    ) -> None:
        self.method = method
        self.put = put
        self.get_form = get
        self.attributes = attributes
        self.given: dict[Any, Rule] = {}

    def __setitem__(self, primitive: Any, rule: Rule) -> None:
        self.given[primitive] = rule
        setattr(primitive, self.method, self.put(primitive, rule))
        for name, value in self.attributes.items():
            setattr(primitive, name, value)

    def __getitem__(self, primitive: Any) -> Rule:
        if primitive in self.given:
            return self.given[primitive]
        if not self.is_defined(primitive):
            raise KeyError(primitive)
        return self.get_form(primitive, getattr(primitive, self.method))

    def is_defined(self, primitive: Any) -> bool:
        """Whether the primitive's class has the rule."""
        if not isinstance(primitive, ours.Primitive):
            return False
        return getattr(type(primitive), self.method) is not getattr(ours.Primitive, self.method)

    def __contains__(self, primitive: Any) -> bool:
        return primitive in self.given or self.is_defined(primitive)

    def __delitem__(self, primitive: Any) -> None:
        del self.given[primitive]
        delattr(primitive, self.method)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


def _outputs(primitive: Any, out: Any) -> list[Any]:
    return list(out) if primitive.multiple_results else [out]


# ---- Forward mode -------------------------------------------------------------------------------


def _jvp_from_jax(primitive: Any, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        given = [zeros.to_jax(t, typeof(x)) for x, t in zip(primals, tangents, strict=True)]
        out, out_tangent = rule(tuple(primals), tuple(given), **params)
        if primitive.multiple_results:
            return list(out), [zeros.from_jax(t) for t in out_tangent]
        return out, zeros.from_jax(out_tangent)

    return jvp


def _jvp_to_jax(primitive: Any, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out, found = rule(list(primals), [zeros.from_jax(t) for t in tangents], **params)
        if primitive.multiple_results:
            pairs = zip(out, found, strict=True)
            return out, [zeros.to_jax(t, typeof(y)) for y, t in pairs]
        return out, zeros.to_jax(found, typeof(out))

    return jvp


# ---- Transposition ------------------------------------------------------------------------------


def _transpose_from_jax(primitive: Any, rule: Rule) -> Rule:
    def transpose(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        given: Any = ct
        if primitive.multiple_results:
            avals = primitive.typed(tuple([_type(x) for x in operands]), params)
            pairs = zip(ct, avals, strict=True)
            given = [zeros.to_jax(one, aval) for one, aval in pairs]
        found = rule(given, *[zeros.undefined(x) for x in operands], **params)
        if found is zeros.Zero or isinstance(found, zeros.Zero):
            return [None] * len(operands)
        return [zeros.from_jax(x) for x in found]

    return transpose


def _transpose_to_jax(primitive: Any, rule: Rule) -> Rule:
    def transpose(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        if isinstance(ct, zeros.Zero):
            return [zeros.Zero(x.aval) if zeros.is_undefined_primal(x) else None for x in operands]
        cts = [zeros.from_jax(x) for x in ct] if primitive.multiple_results else ct
        found = rule(cts, *[zeros.linear(x) for x in operands], **params)
        return [
            zeros.Zero(x.aval) if given is None and zeros.is_undefined_primal(x) else given
            for x, given in zip(operands, found, strict=True)
        ]

    return transpose


def _type(x: Any) -> Any:
    return x.aval if isinstance(x, ours.Linear) else typeof(x)


# ---- Batching -----------------------------------------------------------------------------------


def _axes(primitive: Any, axes: Any, count: int) -> Any:
    """The batch axes of the results; one for all of them is one for each."""
    if primitive.multiple_results and (axes is None or isinstance(axes, int)):
        return [axes] * count
    return axes


def _batch_from_jax(primitive: Any, rule: Rule) -> Rule:
    def batch(size: Any, operands: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        out, out_axes = rule(tuple(operands), tuple(axes), **params)
        out = list(out) if primitive.multiple_results else out
        return out, _axes(primitive, out_axes, len(_outputs(primitive, out)))

    return batch


def _fancy_from_jax(primitive: Any, rule: Rule) -> Rule:
    def batch(axis: Axis, operands: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        data = AxisData(axis.name, axis.size)
        out, out_axes = rule(data, tuple(operands), tuple(axes), **params)
        out = list(out) if primitive.multiple_results else out
        return out, _axes(primitive, out_axes, len(_outputs(primitive, out)))

    return batch


def _axis_from_jax(primitive: Any, rule: Rule) -> Rule:
    def with_data(data: AxisData, operands: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = rule(data.size, data.name, None, operands, axes, **params)
        return found

    return _fancy_from_jax(primitive, with_data)


def _size(operands: Sequence[Any], axes: Sequence[Any]) -> int:
    return next(typeof(x).shape[at] for x, at in zip(operands, axes, strict=True) if at is not None)


def _batch_to_jax(primitive: Any, rule: Rule) -> Rule:
    def batch(operands: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        size = _size(operands, axes)
        axis: Any = Axis(size) if primitive.takes_axis else size
        return rule(axis, list(operands), list(axes), **params)

    return batch


def _fancy_to_jax(primitive: Any, rule: Rule) -> Rule:
    def batch(data: AxisData | None, operands: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        size = data.size if data is not None else _size(operands, axes)
        name = data.name if data is not None else None
        axis: Any = Axis(size, name) if primitive.takes_axis else size
        return rule(axis, list(operands), list(axes), **params)

    return batch


def _axis_to_jax(primitive: Any, rule: Rule) -> Rule:
    fancy = _fancy_to_jax(primitive, rule)

    def batch(size: int, name: Any, kind: Any, operands: Any, axes: Any, **params: Any) -> Any:
        return fancy(AxisData(name, size), operands, axes, **params)

    return batch


# ---- Partial evaluation and dead code -----------------------------------------------------------


def _dce_from_jax(primitive: Any, rule: Rule) -> Rule:
    def dce(eqn: Any, used: Sequence[bool]) -> Any:
        _, found = rule(list(used), eqn)
        return eqn if found is None else found

    return dce


def _dce_to_jax(primitive: Any, rule: Rule) -> Rule:
    def dce(used: Sequence[bool], eqn: Any) -> tuple[list[bool], Any]:
        if not any(used) and not eqn.effects:
            return [False] * len(eqn.invars), None
        found = rule(eqn, list(used)) if primitive.higher_order else eqn
        left = {id(v) for v in found.invars}
        return [id(v) in left for v in eqn.invars], found

    return dce


primitive_jvps = Registry("jvp", _jvp_from_jax, _jvp_to_jax)
primitive_transposes = Registry("transpose", _transpose_from_jax, _transpose_to_jax)
primitive_batchers = Registry("batch", _batch_from_jax, _batch_to_jax, takes_axis=False)
fancy_primitive_batchers = Registry("batch", _fancy_from_jax, _fancy_to_jax, takes_axis=True)
axis_primitive_batchers = Registry("batch", _axis_from_jax, _axis_to_jax, takes_axis=True)
dce_rules = Registry("dce", _dce_from_jax, _dce_to_jax, higher_order=True)
