"""What every random function does around its formula.

`sampler` turns a formula for typed keys into a public function. The function checks and completes
its arguments, once; called eagerly it is one program, which jaxlib's C++ repeats by itself; the key
is looked at when the program is traced, and not again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perspex import config
from perspex.arguments.arrays import as_dtype, check_arraylike
from perspex.arguments.dtypes import float_dtype, inexact_dtype
from perspex.arguments.shapes import iterated_shape
from perspex.arguments.sharded import lying
from perspex.jitted.compiled import build
from perspex.jitted.fused import Fused
from perspex.jitted.signature import Options
from perspex.ops.keys import random_unwrap, random_wrap
from perspex.random import lineage
from perspex.random.arguments import (
    check_method,
    check_single,
    default_generator,
    drawn_shape,
    is_key,
    shape_of,
)
from perspex.random.words import document
from perspex.runtime.dispatch import EVAL, fast_callable
from perspex.tracing.staging import JaxprTrace
from perspex.tracing.trace import state

F = TypeVar("F", bound=Callable[..., Any])

# ---- Programs of a key --------------------------------------------------------------------------


def _programs(
    name: str, draw: Callable[..., Any], static: tuple[int, ...], makes_keys: bool = False
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`draw`, a function of a typed key, for eager calls and for calls under a transform.

    An eager call, or one that is transformed eagerly, is one program; while something is traced,
    the call is part of that. The arguments at the positions `static` are not arrays.
    """

    def program(key: Any, *arguments: Any) -> Any:
        typed = is_key(key)
        before, lineage.inside.program = lineage.inside.program, True
        try:
            if typed:
                return draw(key, *arguments)
            out = draw(random_wrap(key, impl=default_generator()), *arguments)
        finally:
            lineage.inside.program = before
        if makes_keys and not config.enable_custom_prng.value:
            return random_unwrap(out)
        return out

    program.__name__ = name
    owner = Fused(program, Options(static, inline=True))
    whole, _ = build(program, Options(static))

    def checked(key: Any, *arguments: Any) -> Any:
        check_single(name, key)
        return program(key, *arguments)

    def miss(key: Any, *arguments: Any) -> Any:
        check_single(name, key)
        return owner.miss(key, *arguments)

    def transformed(key: Any, *arguments: Any) -> Any:
        check_single(name, key)
        return (program if state.trace.__class__ is JaxprTrace else whole)(key, *arguments)

    return fast_callable(name, checked, miss, static, key=owner.options), transformed


def on_key(name: str, static: int = 0, makes_keys: bool = False) -> Callable[..., Any]:
    """Make a function of a typed key and other arguments, the last `static` of them not arrays.

    With `makes_keys` its result is keys, as typed as the key was.
    """

    def decorate(draw: Callable[..., Any]) -> Callable[..., Any]:
        count = draw.__code__.co_argcount
        fast, transformed = _programs(name, draw, tuple(range(count - static, count)), makes_keys)

        @functools.wraps(draw)
        def call(key: Any, *arguments: Any) -> Any:
            run = fast if state.trace is EVAL else transformed
            if lineage.recorder is None or lineage.inside.program:
                return run(key, *arguments)
            return lineage.noted(name, run, (key, *arguments), makes_keys)

        return call

    return decorate


# ---- Distributions ------------------------------------------------------------------------------

_MISSING = object()
_STATIC = "shape", "dtype", "method"


def sampler(
    dtype: Callable[[str, Any], Any] | None = None,
    *,
    static: Sequence[str] = (),
    fits: bool = True,
    converts: bool = True,
    name: str = "",
) -> Callable[[F], F]:
    """Make a public function of a formula, which has its signature and its docstring.

    Args:
      dtype: the check of `dtype`, such as `float_dtype`.
      static: the parameters that are not arrays, beside `shape`, `dtype` and `method`.
      fits: whether `shape` is, or by default becomes, the shape to which the parameters broadcast.
      converts: whether parameters arrive in `dtype`, if that is the dtype of floats.
      name: the name in messages and records; that of the formula unless given.

    The formula gets one typed key, `shape` as a tuple, `dtype` as an `np.dtype`, parameters that
    are arrays or numbers, and a known `method`. What it draws is moved to `out_sharding`.
    """

    def decorate(formula: F) -> F:
        title = name or formula.__name__
        declared = inspect.signature(formula).parameters.values()
        names = [p.name for p in declared]
        places = {word: at for at, word in enumerate(names)}
        defaults = [_MISSING if p.default is p.empty else p.default for p in declared]
        needed = sum(value is _MISSING for value in defaults)
        most = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in declared)
        sharded = names[-1] == "out_sharding"
        if sharded:
            names.pop()
        rest = [tuple(defaults[n:]) for n in range(most + 1)]
        at_shape, at_dtype = places.get("shape", 0), places.get("dtype", 0)
        finds_shape = defaults[at_shape] is None
        fixed = {*_STATIC, *static}
        parameters = [word for word in names[1:] if word not in fixed]
        united = fits and bool(parameters)
        floats = converts and dtype in (float_dtype, inexact_dtype)
        has_method = "method" in places

        def draw(key: Any, *values: Any) -> Any:
            given = dict(zip(names[1:], values, strict=True))
            if has_method:
                check_method(title, given["method"])
            if parameters:
                check_arraylike(title, *[given[word] for word in parameters])
            if united:
                shapes = [shape_of(given[word]) for word in parameters]
                given["shape"] = drawn_shape(title, given["shape"], *shapes)
            if floats:
                for word in parameters:
                    given[word] = as_dtype(given[word], given["dtype"])
            return formula(key, **given)

        positions = tuple([at for at, word in enumerate(names) if word in fixed])
        plain = not parameters and len(names) == most
        fast, transformed = _programs(title, formula if plain else draw, positions)

        def call(*given: Any, **named: Any) -> Any:
            # The arguments by position, as Python binds them.
            count = len(given)
            if count > most:
                return formula(*given, **named)  # Python refuses, and says why
            values = [*given, *rest[count]]
            for word in named:
                at = places.get(word, -1)
                if at < count:
                    return formula(*given, **named)
                values[at] = named[word]
            if count < needed and any([value is _MISSING for value in values]):
                return formula(*given, **named)
            place = values.pop() if sharded else None
            if at_shape and not (finds_shape and values[at_shape] is None):
                values[at_shape] = iterated_shape(title, values[at_shape])
            if at_dtype:
                values[at_dtype] = dtype(title, values[at_dtype])  # type: ignore[misc]
            run = fast if state.trace is EVAL else transformed
            if place is not None:
                return lying(title, place, run(*values))
            if lineage.recorder is None or lineage.inside.program:
                return run(*values)
            return lineage.noted(title, run, values)

        document(formula, dtype, parameters, united)
        functools.update_wrapper(call, formula)
        return call  # type: ignore[return-value]

    return decorate
