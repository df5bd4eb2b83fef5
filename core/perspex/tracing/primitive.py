"""Primitives: the operations of the language, each with all its rules."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

from perspex.base.effects import Effects, no_effects
from perspex.errors import ShardingTypeError
from perspex.ir.avals import NOWHERE, ShapedArray
from perspex.ir.references import is_ref_type
from perspex.layout.named import NamedSharding
from perspex.tracing import cuts, spaces
from perspex.tracing.cuts import NO_SUMS, Sums
from perspex.tracing.trace import state


class Linear:
    """Stands in a transpose rule for an operand in which the equation is linear."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    def __repr__(self) -> str:
        return f"Linear({self.aval.str_short()})"


class Primitive:
    """An operation of the language with all its rules.

    A subclass states the rules as methods; `params` are keyword-only and hashable.

    * `type(*avals, **params)` gives the aval of the result, or a tuple of avals where
      `multiple_results` is true. It is pure: results are cached by avals and params.
    * `lower(b, *values, **params)` emits StableHLO through the builder `b` and returns the value or
      the list of values; `b.in_avals` and `b.out_avals` are the avals of this equation.
    * `jvp(primals, tangents, **params)` returns primal and tangent results; `None` is a symbolic
      zero, both in `tangents` and in the tangent returned.
    * `taylor(series, *operands, **params)` is the result where some operands are series of the
      trace `series` (`transforms.taylor`). It follows from `jvp`; a `degree` makes it shorter.
    * `transpose(ct, *operands, **params)` gives one cotangent per operand. Operands in which the
      equation is linear are `Linear` placeholders; for the others the cotangent is `None`. `ct` is
      the cotangent of the result, or the list of them (`None` for zero) for multiple results.
    * `batch(axis_size, operands, axes, **params)` applies the operation to operands with one more
      axis at `axes[i]` (`None`: not batched); returns result and its axis, or two lists of them.
      Where `takes_axis` is true, `batch(axis, operands, axes, **params)` gets the `Axis` with its
      name. It is also called when no operand is batched, if `axis_names(params)` has the name.
    * `effects(params)` says what an equation does beyond its results. An equation with effects
      stays in its program even if nobody reads it. One with ordered effects has the rule
      `sequence(token, *operands, **params)`: it binds the same equation after everything that led
      to `token`, and returns the next token and the results.
    * `evaluate(*operands, **params)`, where `on_host` is true, gives the results outside every
      trace: a call of Python takes the place of a compiled program.
    * `staged(avals, operands, **params)`, where `untraced` is true: the params hold a function of
      Python (`rules.custom_call`). Gives the equation that a staging trace writes once the
      function has been traced: primitive, operands, params. `call_batched(trace, operands,
      **params)` is what it is in a batching trace.
    * `flops(operands, results, params)` is how many operations of arithmetic one run of an equation
      of these types takes, one for each element of a sum, a product, a sine; `None` where that is
      unknown. `traffic(operands, results, params)` is how many bytes it reads and writes by itself,
      not fused with others.
    * `checked(checks, *operands, **params)` is what `checkify` makes of an equation: it returns the
      results, and tells `checks` (`transforms.checks.Checks`) what may have failed. By default that
      is nothing, or a NaN among the results where `makes_nan` is true.
    * `cut(out, *avals, **params)` says how the result is cut over the explicit axes of a mesh,
      given the types of the operands and, in `out`, that of the result without this; for several
      results both are sequences (`tracing.cuts`). `type` never sees how operands are cut, and
      `cut` is not asked where `asked(params)` says how the result lies. `pending(*avals,
      **params)` is along which axes the results are unreduced and reduced.
    * `varies(vma, params)` is along which axes of a mesh the results vary inside `shard_map`, given
      those of the operands, which are the same for all of them: staging sees to that.
    * `physical(in_avals, out_avals, params)` gives the params that do the same to arrays whose
      elements carry trailing axes: what an operation on typed PRNG keys is in terms of numbers.

    Those of `higher_order` hold programs among their params, and have two rules more:

    * `split(unknown, *operands, **params)` evaluates what depends on known operands alone. It
      returns the results, `None` where a result is not known yet, and the equation that gives
      those (primitive, operands, params), or `None` if there are none.
    * `dce(eqn, used)` is the equation without what only unused results need.
    """

    name: str = "primitive"
    multiple_results: bool = False
    # Works element by element; the lowering spreads scalar operands over the result's shape.
    elementwise: bool = False
    # Calls, loops and branches: programs are among the params.
    higher_order: bool = False
    # A call of the program `jaxpr` among the params, with the operands as they are.
    is_call: bool = False
    # `batch` is given the axis with its name: collectives, and programs in which they may stand.
    takes_axis: bool = False
    # A call of a Python function that has not been traced.
    untraced: bool = False
    # Outside every trace `evaluate` is called instead of a compiled program.
    on_host: bool = False
    # A call that outside every trace goes operation by operation if some are `on_host`.
    opens_on_host: bool = False
    # `lower` deals with typed keys itself, instead of being given their numbers.
    lowers_keys: bool = False
    # Uses up the typed key that is its first operand: nothing else may draw from it or split it.
    consumes_key: bool = False
    # Its result is its first operand in another form: of a typed key, the same key.
    keeps_elements: bool = False
    # Puts numbers elsewhere and computes none.
    only_moves: bool = False
    # Arithmetic: among its results may be a NaN where there is none among the operands.
    makes_nan: bool = False
    # The degree of the results in the inexact operands together, if they are homogeneous in them: 1
    # where the operation is linear, 2 for a product of two.
    degree: int | None = None
    # Two in a row are one: `merged(first, params)` gives its operands and params.
    merges: bool = False
    # In which memory the results lie, given the name and the types of the operands; `None` where
    # `type` is given these as they are and says it itself.
    memory: Any = staticmethod(spaces.joined)
    # Params that are not printed: always (`...`), or when they have the given value.
    quiet: ClassVar[dict[str, Any]] = {}
    # Params that JAX prints and that have only one value here.
    printed: ClassVar[dict[str, Any]] = {}
    # `notation(eqn, outputs, operands, is_read)` is the text of an equation that has a notation of
    # its own, given the texts of its variables and whether somebody reads its results.
    notation: Any = None
    # What transforms it is a function of the user.
    has_rule_of_its_own: bool = False
    # Takes refs: operands that are mutable.
    takes_refs: bool = False
    # In print, the variables of the callee are named as those it is called with.
    same_variables: bool = False
    types: dict[Any, Any]

    def __init__(self) -> None:
        self.types = {}

    def __call__(self, *args: Any, **params: Any) -> Any:
        return state.trace.bind(self, args, params)

    bind = __call__

    def typed(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """`type`, from the cache."""
        key = (avals, tuple(params.items())) if params else avals
        out = self.types.get(key)
        if out is None:
            out = self.types[key] = self.fresh_type(avals, params)
        return out

    def fresh_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """`type`, and along which axes of a mesh the results vary."""
        if not self.takes_refs:
            refuse_refs(self, avals)
            if ShapedArray.are_spaces_used and self.memory is not None:
                here = tuple([aval.update(memory_space=spaces.DEVICE) for aval in avals])
                if here != avals:
                    out = self.fresh_type(here, params)
                    return spaces.over(out, self.memory(self.name, avals))
        if any([aval.cut for aval in avals]) or (params and self.asked(params)):
            out = self.cut_type(avals, params)
        else:
            out = self.type(*avals, **params)
        vma = avals[0].vma if avals else NOWHERE
        return over(out, self.varies(vma, params)) if vma else out

    def cut_type(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """`type` of operands that are cut, or of a result that is asked to be."""
        out = self.type(*[aval.uncut() for aval in avals], **params)
        asked = self.asked(params)
        mesh = cuts.mesh_of(self.name, avals, asked)
        if asked is not None:
            self.check_asked(asked, avals, params)
            return out.update(sharding=asked)
        found = self.cut(out, *avals, **params)
        pending = self.pending(*avals, **params)
        if not self.multiple_results:
            return cuts.made(self.name, mesh, avals, out, found, pending)
        return tuple(
            [
                cuts.made(self.name, mesh, avals, aval, cut, pending)
                for aval, cut in zip(out, found, strict=True)
            ]
        )

    def asked(self, params: dict[str, Any]) -> NamedSharding | None:
        """How the result is asked to lie."""
        found: NamedSharding | None = params.get("out_sharding", params.get("sharding"))
        return found

    def check_asked(
        self, asked: NamedSharding, avals: Sequence[ShapedArray], params: dict[str, Any]
    ) -> None:
        """Raise if the result cannot be unreduced or reduced as it is asked to be."""
        if not asked.spec.is_plain:
            raise NotImplementedError(
                f"{self.name} gives no results that are unreduced or reduced, got {asked.spec}"
            )

    def cut(self, out: Any, *avals: Any, **params: Any) -> Any:
        """How the result is cut, or each of the results."""
        types = ", ".join([aval.str_short() for aval in avals])
        raise ShardingTypeError(
            f"the primitive `{self.name}` has no rule for operands that are cut along explicit "
            f"axes of a mesh, {types}. Let the compiler decide, with "
            "jax.sharding.auto_axes(f, out_sharding=...), or reshard the operands"
        )

    def pending(self, *avals: Any, **params: Any) -> Sums:
        """Along which axes the results are unreduced and reduced."""
        for aval in avals:
            if cuts.sums(aval) != NO_SUMS:
                raise NotImplementedError(
                    f"{self.name} takes no operands that are unreduced or reduced, got type "
                    f"{aval.str_short()}; reshard them"
                )
        return NO_SUMS

    def varies(self, vma: frozenset[str], params: dict[str, Any]) -> frozenset[str]:
        """Along which axes of a mesh the results vary, if the operands vary along `vma`."""
        return vma

    def __repr__(self) -> str:
        return self.name

    # `*args: Any, **kwargs: Any` lets each primitive state its own signature.

    def type(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("type")

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("lower")

    def jvp(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("jvp")

    def taylor(self, series: Any, *operands: Any, **params: Any) -> Any:
        """The result at series: by the `degree`, or else by `jvp`."""
        if self.degree == 1:
            return series.linear(self, operands, params)
        if self.degree == 2:
            return series.bilinear(self, operands, params)
        return series.derived(self, operands, params)

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("transpose")

    def batch(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("batch")

    def physical(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        raise TypeError(
            f"{self.name} is not defined on typed PRNG keys; "
            "use random.key_data(key) for the numbers in a key"
        )

    def effects(self, params: dict[str, Any]) -> Effects:
        """What an equation with these params does beyond its results."""
        return no_effects

    def flops(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: dict[str, Any],
    ) -> float | None:
        """The arithmetic operations of one run; `None` where they are unknown."""
        return 0.0 if self.only_moves else None

    def traffic(
        self,
        operands: Sequence[ShapedArray],
        results: Sequence[ShapedArray],
        params: dict[str, Any],
    ) -> float | None:
        """The bytes that one run reads and writes."""
        return float(sum([aval.nbytes for aval in (*operands, *results)]))

    def checked(self, checks: Any, *operands: Any, **params: Any) -> Any:
        """The results, after telling `checks` what may have failed."""
        outs = self(*operands, **params)
        if self.makes_nan:
            checks.nans(self, outs if self.multiple_results else [outs])
        return outs

    def sequence(self, token: Any, *operands: Any, **params: Any) -> Any:
        raise self.missing("sequence")

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("evaluate")

    def staged(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("staged")

    def call_batched(self, *args: Any, **kwargs: Any) -> Any:
        raise self.missing("call_batched")

    def axis_names(self, params: dict[str, Any]) -> Iterable[Hashable]:
        """The named axes that an equation with these params runs along."""
        return ()

    def merged(self, first: Any, params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        raise self.missing("merged")

    def split(self, unknown: Sequence[bool], *operands: Any, **params: Any) -> Any:
        raise self.missing("split")

    def dce(self, eqn: Any, used: Sequence[bool]) -> Any:
        raise self.missing("dce")

    def missing(self, rule: str) -> Exception:
        return NotImplementedError(
            f"the primitive `{self.name}` has no {rule} rule; "
            f"define the method `{rule}` of {type(self).__module__}.{type(self).__qualname__}"
        )


def over(out: Any, vma: frozenset[str]) -> Any:
    """The type of a result, or the tuple of those of several, that varies along `vma`."""
    if isinstance(out, ShapedArray):
        return out.update(vma=vma)
    return tuple([aval.update(vma=vma) for aval in out])


def refuse_refs(primitive: Primitive, avals: Sequence[Any]) -> None:
    """Raise `TypeError` if one of the operands is a ref, which is no array."""
    for i, aval in enumerate(avals):
        if is_ref_type(aval):
            raise TypeError(
                f"{primitive} got a Ref of type {aval} at position {i}, but a Ref can't be passed "
                "where an array is expected. Read its value with `ref[...]`."
            )


def refused(primitive: Primitive, error: TypeError) -> TypeError:
    """The error for an operand that is not an array, with the name of the operation."""
    return TypeError(f"{primitive}: {error}") if type(error) is TypeError else error
