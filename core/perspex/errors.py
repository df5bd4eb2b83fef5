"""The exceptions of Perspex.

    Exception
     +- TypeError
     |   +- JAXTypeError                      a program that tracing cannot follow
     |   |   +- ConcretizationTypeError       a value was needed, and there is only a type
     |   |   |   +- TracerBoolConversionError         `if`, `while`, `and`, `bool()`
     |   |   |       +- TracerTruthValueError         of several elements: a ValueError, too
     |   |   +- TracerArrayConversionError    a tracer was given to NumPy
     |   |   +- TracerIntegerConversionError  a tracer was used as an index or a length
     |   |   +- UnexpectedTracerError         a tracer outlived the function that was traced
     |   |   +- KeyReuseError                 a random key was used twice
     |   +- JaxprTypeError                    a jaxpr that does not type-check: our own mistake
     +- IndexError
     |   +- JAXIndexError
     |       +- NonConcreteBooleanIndexError  a traced mask as an index: unknown result shape
     +- ValueError
     |   +- TypePromotionError                dtypes with no common dtype
     +- RuntimeError
     |   +- JaxRuntimeError                   what XLA or the device reports (jaxlib's own class)
     |   +- StaleCaptureError                 what a jitted function captured has changed
     |   +- ProcessEndedError                 a process that this one computes with has ended
     |   +- ProgramMismatchError              the processes are about to run different programs
     +- Warning
     |   +- UserWarning
     |       +- StaleCaptureWarning           the same, under the policy that only warns
     +- InconclusiveDimensionOperation        a symbolic dimension that cannot be decided
     +- ShardingTypeError                     arrays are cut in ways that an operation cannot join
     +- ForbiddenCollectiveError              devices would exchange what `no_collectives` forbids

The names and the built-in bases are those of `jax.errors`, so `except` clauses written for JAX
work. Each has a page: `%explain NAME` in a notebook, `perspex explain NAME` in a terminal.

Everything else that users meet stays a built-in: `TypeError` for operands whose shapes or
dtypes do not fit, `ValueError` for bad axes and for shapes that do not broadcast, `IndexError` for
indices.

Messages are composed in `perspex.advice.messages`; `card_of` gives one in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.advice.story import Card, Message
from perspex.base.xla import JaxRuntimeError as JaxRuntimeError

__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "ProcessEndedError", "ProgramMismatchError", "StaleCaptureError", "StaleCaptureWarning",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "TracerTruthValueError", "UnexpectedTracerError",
]  # fmt: skip


class ShardingTypeError(Exception):
    """The types of arrays say that they are cut in ways that an operation cannot join.

    This error and the next are private in JAX, so `jax.errors` does not list them.
    """


class ForbiddenCollectiveError(Exception):
    """Devices would have to exchange numbers along an axis that `no_collectives` names."""


class JAXTypeError(TypeError):
    """A program that tracing cannot follow. Base of the errors about tracers."""

    @property
    def card(self) -> Card | None:
        """The parts of the message, if it is about a traced value."""
        return card_of(self)


class JAXIndexError(IndexError):
    """An index that tracing cannot follow."""

    @property
    def card(self) -> Card | None:
        """What the message says, in parts."""
        return card_of(self)


def card_of(error: BaseException) -> Card | None:
    """The card of an error about a traced value; `None` for all others."""
    message = error.args[0] if error.args else None
    return getattr(message, "card", None) if isinstance(message, Message) else None


class ConcretizationTypeError(JAXTypeError):
    """A concrete value was needed where there is only a traced one.

    While a function is traced its arguments stand for *all* arrays of their shape and dtype. They
    have no value, so nothing in Python can depend on one. If Python must depend on an argument,
    mark it static: the function is then traced once for each of its values.

    >>> from functools import partial
    >>> import perspex.numpy as jnp
    >>> from perspex import jit
    >>> @jit
    ... def ramp(n):
    ...     return jnp.arange(n)
    >>> ramp(3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.ConcretizationTypeError: ...
    >>> partial(jit, static_argnames="n")(lambda n: jnp.arange(n))(n=3)
    Array([0, 1, 2], dtype=int32)
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """Python needed to know whether a traced value is true.

    `if`, `while`, `and`, `or`, `not`, `assert` and `bool()` need to know. Python takes one branch,
    and a traced value has no truth value yet. Compute both and select, or let the device choose.

    >>> import perspex.numpy as jnp
    >>> from perspex import jit, lax
    >>> @jit
    ... def bump(x):
    ...     return x if x > 0 else -x
    >>> bump(-2.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.TracerBoolConversionError: Attempted boolean conversion of traced array ...
    >>> jit(lambda x: jnp.where(x > 0, x, -x))(-2.0)
    Array(2., dtype=float32, weak_type=True)
    >>> jit(lambda x: lax.cond(x > 0, lambda y: y, lambda y: -y, x))(-2.0)
    Array(2., dtype=float32, weak_type=True)
    """


class TracerTruthValueError(TracerBoolConversionError, ValueError):
    """Python needed to know whether a traced array is true that has not just one element.

    Such an array has no truth value outside of tracing either, which is a `ValueError` there.

    >>> import perspex.numpy as jnp
    >>> from perspex import jit
    >>> jit(lambda x: x if x > 0 else -x)(jnp.ones(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.TracerTruthValueError: Attempted boolean conversion of traced array ...
    """


class TracerArrayConversionError(JAXTypeError):
    """A traced array was given to NumPy, which needs its numbers.

    >>> import numpy as np
    >>> import perspex.numpy as jnp
    >>> from perspex import jit
    >>> jit(lambda x: np.sin(x))(jnp.zeros(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.TracerArrayConversionError: ...
    >>> jit(lambda x: jnp.sin(x))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """


class TracerIntegerConversionError(JAXTypeError):
    """A traced integer was used where Python needs an index or a length.

    >>> import perspex.numpy as jnp
    >>> from perspex import jit
    >>> table = [10, 20, 30]
    >>> jit(lambda i: table[i])(1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.TracerIntegerConversionError: ...
    >>> jit(lambda i: jnp.array(table)[i])(1)
    Array(20, dtype=int32)
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced mask was used as an index, so the size of the result is unknown.

    >>> import perspex.numpy as jnp
    >>> from perspex import jit
    >>> x = jnp.array([1.0, -2.0, 3.0])
    >>> jit(lambda x: x[x > 0].sum())(x)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.NonConcreteBooleanIndexError: ...
    >>> jit(lambda x: jnp.where(x > 0, x, 0).sum())(x)
    Array(4., dtype=float32)
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after the traced function had returned.

    It escaped through a side effect: a list, a global or an attribute. Return it instead.

    >>> from perspex import jit
    >>> seen = []
    >>> @jit
    ... def double(x):
    ...     seen.append(x)
    ...     return 2 * x
    >>> double(1.0)
    Array(2., dtype=float32, weak_type=True)
    >>> seen[0] + 1  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.UnexpectedTracerError: ...
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice, which gives the same numbers twice.

    >>> from perspex import random
    >>> first, second = random.split(random.key(0))
    >>> bool(random.uniform(first) == random.uniform(second))
    False
    """


class StaleCaptureError(RuntimeError):
    """A jitted function was called after a variable that it captured had changed.

    Raised in a notebook under the policy `error` of the flag `stale_captures`. Trace the function
    again with its method `retrace`, or pass the value as an argument.
    """


class StaleCaptureWarning(UserWarning):
    """A jitted function ran with the old value of a variable that it captured.

    Issued in a notebook, once for each change, under the policy `warn` of `stale_captures`.
    `function` is its name, `changes` says what has changed, and `remedy` what to do.
    """

    function: str = ""
    remedy: str = ""
    changes: tuple[Any, ...] = ()


class ProcessEndedError(RuntimeError):
    """A process that computes together with this one has ended, and this one waited for it.

    `processes` has their numbers. The process that raises it goes on: what it holds itself can be
    read and saved. See docs/scale.md.
    """

    def __init__(self, message: str, processes: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.processes = tuple(processes)


class ProgramMismatchError(RuntimeError):
    """The processes that compute together are about to run different programs.

    Raised on all of them before the first run of a program over devices of several processes; they
    would wait for each other for ever. The flag `check_processes` turns it off. See docs/scale.md.
    """


class JaxprTypeError(TypeError):
    """A jaxpr whose equations do not fit together. Users cannot cause it: please report it."""


class TypePromotionError(ValueError):
    """Dtypes that have no common dtype to promote to; convert one with `x.astype(dtype)`.

    >>> import perspex.numpy as jnp
    >>> jnp.promote_types("float8_e4m3fn", "float32")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    perspex.errors.TypePromotionError: ...
    """


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic dimension whose answer depends on the dimension's value."""
