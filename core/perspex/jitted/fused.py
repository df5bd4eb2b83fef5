"""`fused`: the form of `jit` that the array namespace uses.

A fused function is one program when it is called eagerly, and part of the caller's program, without
an equation of its own, when it is traced.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from perspex import tree
from perspex.base import public
from perspex.jitted.compiled import Compiled
from perspex.jitted.signature import Options, Signature
from perspex.runtime.dispatch import EVAL, fast_callable
from perspex.tracing.array_methods import declared_array
from perspex.tracing.trace import state, typeof
from perspex.transforms.jvp import JvpTrace, JvpTracer
from perspex.transforms.programs import like_primals

F = TypeVar("F", bound=Callable[..., Any])


def declared_arrays(args: Any) -> Any:
    """The arguments with arrays for objects that have `__jax_array__`; `None` if there are none."""
    given = tree.map(declared_array, args)
    pairs = zip(tree.leaves(args), tree.leaves(given), strict=True)
    return given if any(x is not y for x, y in pairs) else None


class Fused(Compiled):
    """The Python side of a function of the array namespace."""

    def __init__(self, fun: Callable[..., Any], options: Options) -> None:
        super().__init__(fun, options)
        self.module = fun.__globals__["__name__"]
        # Where the call has the name of a public function that shares this one with others.
        is_shared = "name" in options.static_argnames
        self._name_at = fun.__code__.co_varnames.index("name") if is_shared else None

    def program_name(self, signature: Signature) -> str:
        """`sum` for the program of a function that `sum` and `prod` share."""
        for where, _, value in signature.static:
            if where in (self._name_at, "name") and isinstance(value, str):
                return value
        return self.name.lstrip("_")

    def called(self, signature: Signature) -> str:
        """The name that users know: `zeros` for a program that `zeros` and `ones` share.

        A program that has no name of its own that they know has that of its first caller.
        """
        name = self.program_name(signature)
        is_shared = name != self.name.lstrip("_")
        if is_shared or public.is_public(self.name, self.module):
            return name
        return public.called(2) or name

    def staged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fun(*args, **kwargs)

    def _not_an_array(self, i: int, leaf: Any, in_tree: Any, error: TypeError) -> str:
        at = f" at position {i}" if in_tree.num_leaves > 1 else ""
        return f"{self.name} requires ndarray or scalar arguments, got {type(leaf)}{at}: {error}"


def _fast_fused(fun: Callable[..., Any], options: Options, accepts: Any = None) -> Any:
    """The C++ callable of a function that is inlined when traced.

    Operands that `accepts` refuses make the result `NotImplemented`.
    """
    owner = Fused(fun, options)

    def guarded_miss(*args: Any) -> Any:
        if not all(map(accepts, args)):
            return NotImplemented, None, False
        given = declared_arrays(args)
        return owner.miss(*args) if given is None else (fun(*given), None, False)

    miss = owner.miss if accepts is None else guarded_miss
    numbers, names = options.static_argnums, options.static_argnames
    fast = fast_callable(owner.name, fun, miss, numbers, names, key=options)
    owner.callables.add(fast)
    return fast


def _dual(x: Any) -> Any:
    """An argument of a function under `jvp`, its tangents as weakly typed as their primals.

    In JAX the function is a program, whose derivative takes such tangents.
    """
    trace = state.trace
    assert isinstance(trace, JvpTrace)
    if x.__class__ in (tuple, list, dict):
        return tree.map(_dual, x)
    if x.__class__ is not JvpTracer or x._trace is not trace:
        return x
    if not x.aval.weak_type or typeof(x.tangent).weak_type:
        return x
    (tangent,) = like_primals([x.tangent], [x.aval])
    dual = JvpTracer(trace, x.primal, tangent)
    dual._past = x._past
    return dual


@overload
def fused(fun: F, *, static: Sequence[str] = ()) -> F: ...


@overload
def fused(*, static: Sequence[str] = ()) -> Callable[[F], F]: ...


def fused(fun: Callable[..., Any] | None = None, *, static: Sequence[str] = ()) -> Any:
    """A function of the array namespace: one program when eager, inlined when traced.

    `static` names the parameters that are not arrays. They must be hashable. The C++ callable for
    eager calls is the function's attribute `fast`.
    """
    if fun is None:
        return functools.partial(fused, static=static)
    # Not by `inspect.signature`: some hundred functions are decorated while Perspex is imported.
    code = fun.__code__
    names = code.co_varnames[: code.co_argcount]
    numbers = tuple([i for i, name in enumerate(names) if name in static])
    fast = _fast_fused(fun, Options(numbers, tuple(static)))
    variable = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    beyond = variable or code.co_kwonlyargcount or code.co_argcount - code.co_posonlyargcount
    count = 0 if beyond else code.co_argcount

    wrapper: Any
    # A signature of its own saves the packing of arguments: 0.1 us of every call.
    if count == 1:

        def unary(x: Any, /) -> Any:
            try:
                trace = state.trace
                if trace is EVAL:
                    return fast(x)
                return fun(_dual(x) if trace.__class__ is JvpTrace else x)
            except TypeError:
                given = declared_arrays((x,))
                if given is None:
                    raise
            return unary(*given)

        wrapper = unary

    elif count == 2:

        def binary(x: Any, y: Any, /) -> Any:
            try:
                trace = state.trace
                if trace is EVAL:
                    return fast(x, y)
                return fun(_dual(x), _dual(y)) if trace.__class__ is JvpTrace else fun(x, y)
            except TypeError:
                given = declared_arrays((x, y))
                if given is None:
                    raise
            return binary(*given)

        wrapper = binary

    else:

        def general(*args: Any, **kwargs: Any) -> Any:
            try:
                trace = state.trace
                if trace is EVAL:
                    return fast(*args, **kwargs)
                if trace.__class__ is JvpTrace:
                    args, kwargs = _dual(args), _dual(kwargs)
                return fun(*args, **kwargs)
            except TypeError:
                given = declared_arrays((args, kwargs))
                if given is None:
                    raise
            return general(*given[0], **given[1])

        wrapper = general

    functools.update_wrapper(wrapper, fun)
    wrapper.fast = fast
    return wrapper


def fused_operator(fun: Callable[..., Any], accepts: Callable[[Any], bool]) -> Any:
    """A function of arrays as an operator method of the C++ array class.

    Returns `NotImplemented` for operands that `accepts` refuses, so that Python asks the other
    operand. Give it the function that `fused` decorated, or one that calls it.
    """

    @functools.wraps(fun)
    def operator(*args: Any) -> Any:
        return fun(*args) if all(map(accepts, args)) else NotImplemented

    return _fast_fused(operator, Options(), accepts)
