"""`jax.extend.source_info_util`: where equations were written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from perspex.as_jax.doors.faces import NameStack as NameStack
from perspex.as_jax.doors.faces import SourceInfo as SourceInfo
from perspex.base import source
from perspex.base.name_stack import Transform, stack_of
from perspex.base.source import register_internal

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]  # fmt: skip


def register_exclusion(path: str) -> None:
    """Take a file, or all files in a folder, for the inside of a library: no line of the user's."""
    register_internal(path)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of names with at most one."""
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """The names that the user has given to what is around."""
    names = source.names_here()
    return NameStack() if names is None else NameStack(names.pieces)


def current() -> SourceInfo:
    """The user's line that runs now."""
    return SourceInfo(source.capture(), current_name_stack())


def new_source_info() -> SourceInfo:
    """No line."""
    return SourceInfo(None, NameStack())


@contextlib.contextmanager
def _named(names: Any) -> Iterator[None]:
    before = source.enter_scope("")
    try:
        source.swap_names(stack_of(*getattr(names, "stack", [names])))
        yield
    finally:
        source.exit_scope(before)


@contextlib.contextmanager
def extend_name_stack(name: str | Transform) -> Iterator[NameStack]:
    """A context whose equations have one name more."""
    before = source.enter_scope(name)
    try:
        yield current_name_stack()
    finally:
        source.exit_scope(before)


def transform_name_stack(name: str) -> Any:
    """A context whose equations say that a transformation made them, as in `jvp(layer)`."""
    return extend_name_stack(Transform(name))


def set_name_stack(name_stack: Any) -> Any:
    """A context whose equations have these names."""
    return _named(name_stack)


def reset_name_stack() -> Any:
    """A context whose equations have no names."""
    return _named(NameStack())


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: Any = None) -> Iterator[None]:
    """A context whose equations have these names; their lines are those of the user anyway."""
    if name_stack is None:
        yield
    else:
        with _named(name_stack):
            yield


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """The line where an equation was written, as text."""
    return source.summary(getattr(source_info, "traceback", source_info))
