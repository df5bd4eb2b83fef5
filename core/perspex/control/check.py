"""`check`: an operation that raises an exception if one of its operands says that something failed.

    flags, codes, numbers of an `Error` -> nothing

Evaluated at once it raises. A compiled program cannot, so `check` has no lowering: `checkify` makes
the error a result. With the flag `experimental_unsafe_xla_runtime_errors` the program calls Python,
which raises where the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from perspex import config, tree
from perspex.base import effects, source
from perspex.base.effects import Effects
from perspex.base.pytree_registry import register_pytree_node_class
from perspex.control.callback import HostCallback
from perspex.ir.avals import ShapedArray
from perspex.ops.structural import to_front
from perspex.transforms.checks import Checks, reduced
from perspex.transforms.failures import BatchedError, Cause, Entry, JaxException, Slot


class JaxRuntimeError(ValueError):
    """A check failed."""


@register_pytree_node_class
class Error:
    """Whether a check failed while a function ran, and which one was the first.

    `checkify` returns one. It is a pytree of arrays, so `jit`, `vmap` and `scan` take and return
    it.

    >>> from perspex import numpy as pnp
    >>> from perspex.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "{} is not positive", x)
    >>> checkify.checkify(f)(pnp.array(-1))[0]
    Error(-1 is not positive (`check` failed))
    """

    __slots__ = ("causes", "entries")

    def __init__(
        self, entries: dict[Slot, Entry] | None = None, causes: dict[int, Cause] | None = None
    ) -> None:
        self.entries = {} if entries is None else entries
        self.causes = {} if causes is None else causes

    def get(self) -> str | None:
        """The message of the first check that failed.

        Args:
          None.

        Returns:
          The message; for an error of a batch one line for each example; `None` if all is well.

        Raises:
          TracerBoolConversionError: inside `jit` and its like, where nothing has run yet.

        >>> from perspex import numpy as pnp
        >>> from perspex.experimental import checkify
        >>> inverse = checkify.checkify(lambda x: 1 / x, checkify.div_checks)
        >>> error, _ = inverse(pnp.array(0.0))
        >>> error.get()
        'division by zero'
        """
        found = self.get_exception()
        return None if found is None else str(found)

    def get_exception(self) -> JaxException | None:
        """The first check that failed as an exception.

        Args:
          None.

        Returns:
          The exception; `None` if all is well.

        Raises:
          TracerBoolConversionError: inside `jit` and its like, where nothing has run yet.

        >>> from perspex import numpy as pnp
        >>> from perspex.experimental import checkify
        >>> inverse = checkify.checkify(lambda x: 1 / x, checkify.div_checks)
        >>> error, _ = inverse(pnp.array(0.0))
        >>> error.get_exception()
        DivisionByZeroError('division by zero')
        """
        shape = self.shape
        if not shape:
            return self._first(())
        found = {index: self._first(index) for index in np.ndindex(*shape)}
        failed = {index: error for index, error in found.items() if error is not None}
        return BatchedError(failed) if failed else None

    def throw(self) -> None:
        """Raise an exception if a check failed; inside `checkify` it becomes part of its error.

        Args:
          None.

        Raises:
          JaxRuntimeError: with the message of the first check that failed.
          ValueError: inside `jit` and its like, where nothing has run yet.

        >>> from perspex import numpy as pnp
        >>> from perspex.experimental import checkify
        >>> inverse = checkify.checkify(lambda x: 1 / x, checkify.div_checks)
        >>> error, _ = inverse(pnp.array(2.0))
        >>> error.throw()
        """
        throw(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the batch."""
        return max([np.shape(entry.pred) for entry in self.entries.values()], default=(), key=len)

    def _first(self, index: tuple[int, ...]) -> JaxException | None:
        failed = []
        for entry in self.entries.values():
            at = index[: np.ndim(entry.pred)]
            if entry.pred[at] if at else entry.pred:
                failed.append((int(entry.code[at] if at else entry.code), at, entry.payload))
        if not failed:
            return None
        code, at, payload = min(failed, key=lambda found: found[0])
        return self.causes[code].exception([x[at] if at else x for x in payload])

    def sorted(self) -> list[tuple[Slot, Entry]]:
        """The slots with their entries, in one order for all errors."""
        return sorted(self.entries.items(), key=lambda item: item[0].order())

    def __repr__(self) -> str:
        return f"Error({self.get()})"

    def tree_flatten(self) -> tuple[Any, Any]:
        """The arrays, and what they mean."""
        items = self.sorted()
        leaves = [leaf for _, entry in items for leaf in entry.leaves]
        causes = sorted(self.causes.items(), key=lambda item: item[0])
        return leaves, (tuple([slot for slot, _ in items]), tuple(causes))

    @classmethod
    def tree_unflatten(cls, static: Any, leaves: Sequence[Any]) -> Error:
        """The error with these arrays."""
        slots, causes = static
        given = iter(leaves)
        entries = {
            slot: Entry(next(given), next(given), tuple([next(given) for _ in slot.types]))
            for slot in slots
        }
        return cls(entries, dict(causes))


class Check(HostCallback):
    """The operation. `err_tree` makes an `Error` of the operands; with `debug` it does nothing."""

    name = "check"
    what = "checkify.check"
    quiet: ClassVar[dict[str, Any]] = {"err_tree": ...}

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([effects.check])

    def type(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        return ()

    def function(self, params: dict[str, Any]) -> tuple[Any, str]:
        def fail(*arrays: Any) -> tuple[()]:
            self.evaluate(*arrays, **params)
            return ()

        return fail, self.name

    def evaluate(self, *operands: Any, err_tree: Any, debug: bool) -> list[Any]:
        found = None if debug else tree.unflatten(err_tree, operands).get_exception()
        if found is not None:
            error = JaxRuntimeError(str(found))
            error.add_note(found.where())
            raise error from found
        return []

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        if params["debug"]:
            return []
        if not config.experimental_unsafe_xla_runtime_errors.value:
            raise ValueError(
                "Cannot abstractly evaluate a checkify.check which was not functionalized. This "
                "probably means you tried to stage (jit/scan/pmap/...) a `check` without "
                "functionalizing it through `checkify.checkify`. A compiled program cannot raise "
                f"the exception of the check at {source.summary(b.source)}. Write "
                "`error, out = jit(checkify.checkify(f))(...)`, and then `error.throw()`."
            )
        return super().lower(b, *values, **params)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        return self(*primals, **params), []

    def transpose(self, cts: Any, *operands: Any, **params: Any) -> list[Any]:
        return [None] * len(operands)

    def batch(
        self, axis_size: int, operands: Any, axes: Any, *, err_tree: Any, debug: bool
    ) -> tuple[list[Any], list[int | None]]:
        rows = [to_front(x, at, axis_size) for x, at in zip(operands, axes, strict=True)]
        throw(tree.unflatten(err_tree, rows), debug)
        return [], []

    def checked(self, checks: Checks, *operands: Any, err_tree: Any, debug: bool) -> list[Any]:
        error = tree.unflatten(err_tree, operands)
        checks.absorb(error.entries, error.causes)
        return []


check_p = Check()


def throw(error: Error, debug: bool = False) -> None:
    """Raise an exception if `error` says so, now or, under `checkify`, as a result."""
    if error.shape:
        entries = {slot: reduced(entry) for slot, entry in error.entries.items()}
        error = Error(entries, error.causes)
    leaves, err_tree = tree.flatten(error)
    check_p(*leaves, err_tree=err_tree, debug=debug)
