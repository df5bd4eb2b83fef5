"""What a flag is: the kinds of them, and checks of their values; `perspex.config` has the flags."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perspex.base import environment, events, xla

_Config = xla.Config

flags: dict[str, Flag] = {}
retracing: list[Flag | UserContext] = []


class Flag:
    """A named setting with a global value and a per-thread override.

    Args:
      name: its name, in the environment too: `PERSPEX_NAME` or `JAX_NAME`.
      default: the value where the environment has none.
      doc: what it means.
      check: turns what a user gives into a value, or raises `ValueError`.
      retraces: whether programs are traced under it, so that another value is another program.

    >>> from perspex.config import enable_x64
    >>> with enable_x64(True):
    ...     enable_x64.value
    True
    """

    __slots__ = ("cell", "check", "doc", "name")

    def __init__(
        self, name: str, default: Any, doc: str, check: Callable[[Any], Any], retraces: bool
    ) -> None:
        value = environment.value(name.upper(), default, check)
        self.name, self.doc, self.check = name, doc, check
        self.cell = _Config(
            name, value, include_in_jit_key=retraces, include_in_trace_context=retraces
        )
        flags[name] = self
        if retraces:
            retracing.append(self)

    @property
    def value(self) -> Any:
        return self.cell.value

    def set(self, value: Any) -> None:
        """Set the global value, for every thread.

        Args:
          value: the new value.

        Returns:
          Nothing.

        Raises:
          ValueError: for a value that the flag cannot have.

        >>> from perspex.config import enable_x64
        >>> enable_x64.set(False)
        """
        self.cell.set_global(self.check(value))

    @contextlib.contextmanager
    def __call__(self, new_val: Any = True) -> Iterator[None]:
        previous = self.cell.swap_local(self.check(new_val))
        try:
            yield
        finally:
            self.cell.set_local(previous)

    def __repr__(self) -> str:
        return f"Flag({self.name}={self.value!r})"

    def __bool__(self) -> bool:
        raise TypeError(f"read the flag with `{self.name}.value`")


class DisableJit(Flag):
    """A flag whose context manager names its argument as JAX's does."""

    __slots__ = ()

    def __call__(self, disable: Any = True) -> Any:
        return super().__call__(disable)


class Guard(Flag):
    """A level that C++ reads as well, for each thread and for all."""

    __slots__ = ("key",)

    def __init__(self, name: str, key: str, doc: str, check: Callable[[Any], Any]) -> None:
        super().__init__(name, None, doc, check, False)
        self.key = key
        if self.value is not None:
            xla.set_guard(key, self.value, True)

    def set(self, value: Any) -> None:
        super().set(value)
        xla.set_guard(self.key, self.value, True)

    @contextlib.contextmanager
    def __call__(self, new_val: Any = None) -> Iterator[None]:
        previous = self.cell.get_local()
        try:
            with super().__call__(new_val):
                xla.set_guard(self.key, self.check(new_val), False)
                yield
        finally:
            before = None if previous is xla.UNSET else previous
            xla.set_guard(self.key, before, False)


class Transfers(Flag):
    """The level of transfers in all directions: it sets those of the three."""

    __slots__ = ("directions",)

    def __init__(self, name: str, doc: str, directions: tuple[Guard, ...]) -> None:
        super().__init__(name, None, doc, LEVEL, False)
        self.directions = directions
        if self.value is not None:
            self.set(self.value)

    def set(self, value: Any) -> None:
        super().set(value)
        for guard in self.directions:
            guard.set(value)

    @contextlib.contextmanager
    def __call__(self, new_val: Any) -> Iterator[None]:  # type: ignore[override]
        with contextlib.ExitStack() as stack:
            stack.enter_context(super().__call__(new_val))
            for guard in self.directions:
                stack.enter_context(guard(new_val))
            yield


class Logging(Flag):
    """A flag that, while it is set, has something listen to events and log them."""

    __slots__ = ("kinds", "listener", "stop")

    def __init__(
        self, name: str, doc: str, listener: Callable[[Any], None], kinds: Iterable[str]
    ) -> None:
        super().__init__(name, False, doc, boolean, False)
        self.listener, self.kinds = listener, tuple(kinds)
        self.stop: Callable[[], None] | None = None
        self.set(self.value)

    def _hear(self, event: events.Event) -> None:
        if self.value:
            self.listener(event)

    def set(self, value: Any) -> None:
        super().set(value)
        if self.stop is not None:
            self.stop()
        # Those that set it for one thread listen by themselves.
        listens = self.cell.get_global()
        self.stop = events.subscribe(self._hear, self.kinds) if listens else None

    @contextlib.contextmanager
    def __call__(self, new_val: Any = True) -> Iterator[None]:
        listens = self.check(new_val) and self.stop is None
        stop = events.subscribe(self._hear, self.kinds) if listens else None
        try:
            with super().__call__(new_val):
                yield
        finally:
            if stop is not None:
                stop()


class ThreadGuard(Flag):
    """A flag that C++ takes from the thread that sets it."""

    __slots__ = ()

    def set(self, value: Any) -> None:
        super().set(value)
        xla.guard_thread(self.value)

    @contextlib.contextmanager
    def __call__(self, new_val: Any = True) -> Iterator[None]:
        try:
            with super().__call__(new_val):
                xla.guard_thread(self.value)
                yield
        finally:
            xla.guard_thread(self.value)


class UserContext:
    """A value of the user's that programs are traced under; `make_user_context` makes it."""

    __slots__ = ("_cell", "name")

    def __init__(self, default_value: Any) -> None:
        self.name = "user_context"
        self._cell = _Config(
            self.name, default_value, include_in_jit_key=True, include_in_trace_context=True
        )
        retracing.append(self)

    @property
    def value(self) -> Any:
        """The value here and now."""
        return self._cell.value

    def get_global(self) -> Any:
        """The value of threads that have none of their own."""
        return self._cell.get_global()

    def set_global(self, new_value: Any) -> None:
        """Set the value of threads that have none of their own."""
        self._cell.set_global(new_value)

    @contextlib.contextmanager
    def __call__(self, new_value: Any) -> Iterator[None]:
        previous = self._cell.swap_local(new_value)
        try:
            yield
        finally:
            self._cell.set_local(previous)


def boolean(value: Any) -> bool:
    if isinstance(value, str):
        lowered = value.strip().lower()
        if lowered in ("1", "true", "yes", "on", "y", "t"):
            return True
        if lowered in ("0", "false", "no", "off", "n", "f", ""):
            return False
        raise ValueError(f"expected a boolean, got {value!r}")
    return bool(value)


def one_of(*choices: Any) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value not in choices:
            raise ValueError(f"expected one of {choices}, got {value!r}")
        return value

    return check


LEVEL = one_of(None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
_PRECISION = one_of(
    *("default", "high", "highest", "float32", "tensorfloat32"),
    *("bfloat16", "bfloat16_3x", "fastest"),
    *("ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY"),
    *("ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16"),
    *("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9"),
    *("TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
)


def names(value: Any) -> frozenset[str]:
    if not isinstance(value, (set, frozenset)):
        raise TypeError(f"expected a set of names, got {value!r} of type {type(value).__name__}")
    return frozenset(value)


def anything(value: Any) -> Any:
    return value


def folder(path: Any) -> str | None:
    if not path:
        return None
    text = os.fsdecode(path)
    return text if "://" in text else os.path.abspath(os.path.expanduser(text))


def options(value: Any) -> tuple[tuple[str, Any], ...]:
    """Names and values, hashable and in order; from JSON, too, for the environment's sake."""
    return tuple(sorted(dict(json.loads(value) if isinstance(value, str) else value).items()))


def count(value: Any) -> int | None:
    if value is None:
        return None
    if int(value) < 1:
        raise ValueError(f"expected a number above 0, got {value!r}")
    return int(value)


def rate(value: Any) -> float | None:
    """A positive number for each second; `None` where it is not known."""
    if value is None:
        return None
    found = float(value)
    if not found > 0:
        raise ValueError(f"a rate is a positive number, got {value!r}; None if it is not known")
    return found


def precision(value: Any) -> Any:
    return _PRECISION(value) if isinstance(value, str) else value
