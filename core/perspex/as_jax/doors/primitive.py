"""`jax.extend.core.Primitive`: a primitive that is given its rules one by one.

A primitive of ours is an object whose methods are its rules. A library that was written for JAX
makes an object with a name and registers functions for it. Here, to register a rule is to set the
method on that one object, with the conventions translated (`rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from perspex.base.effects import Effect, Effects, no_effects
from perspex.ir.avals import ShapedArray
from perspex.tracing import primitive as ours
from perspex.tracing.trace import typeof, under
from perspex.transforms.linearize import Rest


class _Types(dict[Any, Any]):
    """Remembers no type: the params of a library's primitive need not be hashable."""

    def get(self, key: Any, default: Any = None) -> Any:
        return default

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


class _Kind(type):
    """Every primitive is an instance of `Primitive`, the built-in ones too."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, ours.Primitive) if cls.opens_all else type.__instancecheck__(cls, x)

    @property
    def opens_all(cls) -> bool:
        return cls.__module__ == __name__ and cls.__qualname__ == "Primitive"


class Primitive(ours.Primitive, metaclass=_Kind):
    """A primitive as JAX makes one: a name, and rules that are registered afterwards.

    Args:
      name: what equations call it.

    >>> double_p = Primitive("double")
    >>> _ = double_p.def_impl(lambda x: x + x)
    >>> print(double_p.bind(2.0))
    4.0
    """

    lowers_keys = True
    # A call outside every trace is one of `impl`.
    on_host = True
    # As in JAX, a subclass may set these.
    multiple_results = False
    call_primitive = False
    map_primitive = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.types = _Types()
        self.seen_effects: Effects = no_effects
        # By platform; `None` is every other.
        self.lowerings: dict[str | None, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"Primitive({self.name!r})"

    def __str__(self) -> str:
        return self.name

    # ---- rules, as JAX registers them -----------------------------------------------------------

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set what a call outside every trace does."""
        vars(self)["impl"] = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule from the types of operands to those of results."""
        vars(self)["abstract_eval"] = lambda *avals, **params: (rule(*avals, **params), no_effects)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule that gives the types of results, and the effects."""
        vars(self)["abstract_eval"] = rule
        return rule

    def def_bind_with_trace(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        """Replace what a trace is asked to do with an operation."""
        self.bind_with_trace = bind
        return bind

    def impl(self, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(f"Evaluation rule for '{self.name}' not implemented")

    def abstract_eval(self, *args: Any, **params: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"Abstract evaluation for '{self.name}' not implemented")

    # ---- the same, as our traces ask for it -----------------------------------------------------

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        out, effects = self.abstract_eval(*avals, **params)
        if effects:
            self.seen_effects |= {
                effect if isinstance(effect, Effect) else Effect(type(effect).__name__, False)
                for effect in effects
            }
        vma = frozenset[str]().union(*[aval.vma for aval in avals])
        out = tuple(out) if self.multiple_results else out
        return ours.over(out, self.varies(vma, params)) if vma else out

    def type(self, *avals: Any, **params: Any) -> Any:
        return self.fresh_type(avals, params)

    def effects(self, params: dict[str, Any]) -> Effects:
        return self.seen_effects

    def evaluate(self, *args: Any, **params: Any) -> Any:
        return self.impl(*args, **params)

    def split(self, unknown: Sequence[bool], *operands: Any, **params: Any) -> Any:
        count = 1
        if self.multiple_results:
            count = len(self.fresh_type(tuple([typeof(x) for x in operands]), params))
        return [None] * count, Rest(self, operands, params)

    def dce(self, eqn: Any, used: Sequence[bool]) -> Any:
        return eqn

    def axis_names(self, params: dict[str, Any]) -> Iterable[Hashable]:
        name = params.get("axis_name")
        return name if isinstance(name, tuple) else (name,)

    def lower(self, b: Any, *values: Any, **params: Any) -> Any:
        rule = self.lowerings.get(b.platform) or self.lowerings.get(None)
        if rule is None:
            raise NotImplementedError(
                f"MLIR translation rule for primitive '{self.name}' not found for platform "
                f"{b.platform}; register one with mlir.register_lowering"
            )
        return rule(b, self, *values, **params)

    def missing(self, rule: str) -> Exception:
        what = {
            "jvp": "Differentiation rule for '{}' not implemented",
            "batch": "Batching rule for '{}' not implemented",
            "transpose": "Transpose rule (for reverse-mode differentiation) for '{}' not "
            "implemented",
        }
        return NotImplementedError(what.get(rule, f"the rule {rule} of '{{}}'").format(self.name))


def bind_with_trace(
    self: Any, trace: Any, args: Sequence[Any], avals: Any = None, params: Any = None
) -> Any:
    """What `trace` makes of the operation: `Primitive.bind_with_trace`.

    The types of the arguments may be left out: `bind_with_trace(trace, args, params)`.
    """
    params = avals if params is None else params
    return under(trace, trace.bind, self, tuple(args), params)


def get_bind_params(self: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The params with which `bind` writes the same equation again."""
    return params
