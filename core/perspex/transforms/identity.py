"""When two programs are the same: what they compute, and not which objects they are.

Tracing a function again gives new variables and new equations. For the compiler it is the same
program if the same primitives, with the same params, are wired in the same way between values of
the same types. `identity` gives equal programs one token, so that a table by tokens finds what was
compiled for any of them: a loop around a fresh `lambda` is traced again, but not recompiled.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from perspex.ir.jaxpr import Atom, ClosedJaxpr, Literal, Var, sub_jaxprs


class Token:
    """Stands for all programs that do the same; it lives as long as one of them, or a key with it.

    `compiled`: what was compiled for these programs, and lives as long. It refers neither to them,
    as each refers to its token, nor to the token: then it goes with the last of them, and does not
    wait for the garbage collector (`without_tokens`, `key_beside`).
    """

    __slots__ = ("__weakref__", "compiled")

    def __init__(self) -> None:
        self.compiled: dict[Any, Any] = {}


_by_text: weakref.WeakValueDictionary[Any, Token] = weakref.WeakValueDictionary()


def identity(closed: ClosedJaxpr) -> Token:
    """The token of a program without constants: one object for all programs that do the same.

    >>> import perspex, perspex.numpy as pnp
    >>> first, second = [perspex.make_jaxpr(lambda x: pnp.sin(x) * 2)(1.0) for _ in range(2)]
    >>> first is second, identity(first) is identity(second)
    (False, True)
    """
    token: Token | None = closed.token
    if token is None:
        closed.token = token = _by_text.setdefault(_text(closed), Token())
    return token


def tokens() -> list[Token]:
    """All that are alive."""
    return list(_by_text.values())


class HowToTransform:
    """A param that says how an equation is transformed, and not what it computes.

    It is no part of the identity of a program: the rules of user functions are such.
    """


def params_identity(params: dict[str, Any]) -> tuple[Any, ...]:
    """The params of an equation as a key, programs among them by what they do."""
    return tuple([(name, _param(params[name])) for name in sorted(params)])


def token_of(params: dict[str, Any]) -> Token | None:
    """The token of the first program in the params of an equation."""
    return next((identity(closed) for closed in sub_jaxprs(params)), None)


def without_tokens(params: dict[str, Any]) -> dict[str, Any]:
    """The same params with programs of their own, which refer to no token."""
    return {name: _anonymous(value) for name, value in params.items()}


def _anonymous(value: Any) -> Any:
    if value.__class__ is ClosedJaxpr:
        return ClosedJaxpr(value.jaxpr, value.consts)
    if value.__class__ is tuple and value and value[0].__class__ is ClosedJaxpr:
        return tuple([_anonymous(closed) for closed in value])
    return value


def key_beside(token: Token, key: Any) -> Any:
    """A key with `None` for a token, to be kept by that token."""
    if key.__class__ is tuple:
        return tuple([key_beside(token, part) for part in key])
    return None if key is token else key


def _param(value: Any) -> Any:
    if value.__class__ is ClosedJaxpr:
        return identity(value)
    if isinstance(value, HowToTransform):
        return HowToTransform
    if value.__class__ is tuple and value and value[0].__class__ is ClosedJaxpr:
        return tuple([identity(closed) for closed in value])
    return value


def _text(closed: ClosedJaxpr) -> Any:
    """The program as nested tuples, variables by the order in which they are bound."""
    assert not closed.consts, "a program inside params has no constants"
    jaxpr = closed.jaxpr
    number: dict[Var, int] = {}

    def bind(var: Var) -> Any:
        number[var] = len(number)
        return var.aval

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            value = np.asarray(atom.val)
            # Bytes, because 0.0 equals -0.0 and no NaN equals another.
            return atom.aval, value.dtype, value.tobytes()
        return number[atom]

    arguments = tuple([bind(var) for var in jaxpr.invars])
    equations = tuple(
        [
            (
                eqn.primitive,
                params_identity(eqn.params),
                tuple([read(atom) for atom in eqn.invars]),
                tuple([bind(var) for var in eqn.outvars]),
            )
            for eqn in jaxpr.eqns
        ]
    )
    return arguments, equations, tuple([read(atom) for atom in jaxpr.outvars])
