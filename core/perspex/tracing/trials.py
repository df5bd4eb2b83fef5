"""Remedies, run on types before they are shown.

An error shows lines to write instead only if they have run: the user's function from these lines
on, or all of it where an argument becomes static, is traced once more with the types of the trace
that failed. The trial works on copies. Names that it assigns, containers that it changes,
attributes that it sets and random numbers that it draws are as before when it ends; it prints
nothing and opens no file. It ends after some seconds, so that it cannot run for ever.
"""

from __future__ import annotations

import builtins
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import Signature, signature, unwrap
from types import CellType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np

from perspex import errors, tree
from perspex.advice import suggest
from perspex.advice.story import Remedy, Story
from perspex.advice.trial import NAME, Rest, call_of, cell_text, rest_of
from perspex.base import events, source
from perspex.base.asynchronous import raise_in, take_back
from perspex.ir.avals import shaped
from perspex.tracing.staging import stage

# Seconds of the processor after which a trial ends; one takes some 20 ms. And between two looks.
_MOST_SECONDS, _LOOK = 2.0, 0.05
_DEEPEST = 4


class _TooLong(BaseException):
    """A trial that has run for too long; no `except Exception` of the user's catches it."""


class _Refused(BaseException):
    """What a trial must not do, as opening a file."""


def works(place: Any, remedy: Remedy, story: Story | None, static: Sequence[str]) -> bool:
    """Whether the lines of a remedy run; `static` are the arguments that it marks static."""
    if static:
        return story is not None and _runs_static(place, story, static)
    if remedy.patch is None:
        return True
    rests = [rest_of(place, remedy.patch, begin) for begin in (False, True)]
    return any(rest is not None and _runs(rest) for rest in rests)


suggest.register_trial(works)


def _runs(rest: Rest) -> bool:
    """Whether the rest of a function, or of a cell, can be traced."""
    names = _Names(rest.frame.f_globals)
    scope = names.copies
    given = {name: names.copy(value) for name, value in rest.frame.f_locals.items()}

    def run() -> None:
        exec(rest.code, scope)
        if not rest.is_cell:
            function = scope[NAME](*[given[name] for name in rest.outer])
            function(*[given[name] for name in rest.names])

    def is_later(at: FrameType, line: int) -> bool:
        code = at.f_code
        is_own = code.co_filename == rest.code.co_filename and code.co_name in (NAME, "<module>")
        return is_own and line > rest.until

    return _traces(run, [], [*given.values(), *scope.values()], is_later)


def _runs_static(place: Any, story: Story, static: Sequence[str]) -> bool:
    """Whether the jitted function can be traced if it knows the values of some arguments."""
    frame: FrameType = place.frame
    failed = frame.f_code.co_filename, frame.f_lineno

    def is_other(at: FrameType, line: int) -> bool:
        return at.f_code is frame.f_code and (at.f_code.co_filename, line) > failed

    found = call_of(frame, story)
    if found is None:
        return False
    owner, args, kwargs = found
    fun = unwrap(owner.fun)
    code = getattr(fun, "__code__", None)
    if code is None or source.is_internal(code.co_filename):
        return _runs_cell(frame, kwargs, static, is_other)
    spec = signature(fun)
    bound = spec.bind(*args, **kwargs)
    if not _are_hashable([bound.arguments.get(name) for name in static]):
        return False
    known = {*static, *owner.options.static_argnames, *_at(spec, owner.options.static_argnums)}
    names = _Names(fun.__globals__)
    copied = names.function(fun)
    dynamic = {name: value for name, value in bound.arguments.items() if name not in known}
    leaves, structure = tree.flatten(dynamic)

    def run(*arrays: Any) -> None:
        bound.arguments.update(tree.unflatten(structure, arrays))
        copied(*bound.args, **bound.kwargs)

    return _traces(run, leaves, [*bound.arguments.values(), *names.copies.values()], is_other)


Later = Callable[[FrameType, int], bool]


def _runs_cell(
    frame: FrameType, values: dict[str, Any], static: Sequence[str], is_other: Later
) -> bool:
    """Whether a cell under a magic can be traced if it knows the values of some names."""
    cell: FrameType | None = frame
    while cell is not None and (
        cell.f_code.co_name != "<module>" or source.is_internal(cell.f_code.co_filename)
    ):
        cell = cell.f_back
    if cell is None or not _are_hashable([values.get(name) for name in static]):
        return False
    text = cell_text(cell.f_code.co_filename)
    if text is None or any(name not in values for name in static):
        return False
    code = compile(text, cell.f_code.co_filename, "exec")
    scope = _Names(cell.f_globals).copies
    # Names that the cell has changed until now begin with what it was given.
    leaves, structure = tree.flatten({n: x for n, x in values.items() if n not in static})

    def run(*arrays: Any) -> None:
        scope.update(tree.unflatten(structure, arrays))
        scope.update({name: values[name] for name in static})
        exec(code, scope)

    return _traces(run, leaves, list(scope.values()), is_other)


def _at(spec: Signature, positions: Sequence[int]) -> list[str]:
    names = list(spec.parameters)
    return [names[i] for i in positions if -len(names) <= i < len(names)]


def _are_hashable(values: Sequence[Any]) -> bool:
    try:
        return all(value is not None for value in values) and hash(tuple(values)) is not None
    except TypeError:
        return False


def _traces(
    run: Callable[..., None], leaves: Sequence[Any], touched: Sequence[Any], is_later: Later
) -> bool:
    """Whether a function can be traced at arguments like those given.

    Where the user's code needs another value further below (`is_later`), the remedy is right, and
    that line gets its own.
    """
    types = [shaped(leaf) for leaf in leaves]

    def flat(*arrays: Any) -> list[Any]:
        run(*arrays)
        return []

    try:
        with events.unheard(), _undone(touched), _limited():
            stage(flat, types, "remedy")
    except (errors.JAXTypeError, errors.JAXIndexError) as error:
        return any(is_later(at.tb_frame, at.tb_lineno) for at in _frames(error.__traceback__))
    except (Exception, _TooLong, _Refused):
        return False
    return True


def _frames(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


# ---- What a trial must not change ----------------------------------------------------------------


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise _Refused


def _say_nothing(*args: Any, **kwargs: Any) -> None:
    """In the place of `print`."""


class _Names:
    """The globals of the user's code, copied: containers, and functions that see the copies."""

    def __init__(self, own: dict[str, Any]) -> None:
        self.own = own
        self.copies: dict[str, Any] = {}
        self.made: dict[int, Any] = {}
        self.copies.update({name: self.copy(value) for name, value in own.items()})
        quiet = {"print": _say_nothing, "open": _refuse, "input": _refuse}
        self.copies["__builtins__"] = {**vars(builtins), **quiet}

    def copy(self, value: Any, depth: int = _DEEPEST) -> Any:
        """A value, with containers copied that it consists of; arrays and objects are kept."""
        kind = type(value)
        if kind not in (dict, list, set, tuple, FunctionType) or not depth:
            return value
        if id(value) in self.made:
            return self.made[id(value)]
        found: Any = value
        if kind is FunctionType:
            return self.function(value) if value.__globals__ is self.own else value
        if kind is dict:
            found = self.made[id(value)] = {}
            found.update({key: self.copy(item, depth - 1) for key, item in value.items()})
        elif kind is list:
            found = self.made[id(value)] = []
            found += [self.copy(item, depth - 1) for item in value]
        else:
            found = self.made[id(value)] = kind([self.copy(item, depth - 1) for item in value])
        return found

    def function(self, fun: FunctionType) -> FunctionType:
        """A function with these globals, and copies of the containers that it closes over."""
        if id(fun) in self.made:
            return self.made[id(fun)]
        cells = fun.__closure__
        empty = None if cells is None else tuple([CellType() for _ in cells])
        made = FunctionType(fun.__code__, self.copies, fun.__name__, fun.__defaults__, empty)
        self.made[id(fun)] = made
        made.__kwdefaults__ = fun.__kwdefaults__
        made.__dict__.update(fun.__dict__)
        for cell, ours in zip(cells or (), empty or (), strict=True):
            try:
                ours.cell_contents = self.copy(cell.cell_contents)
            except ValueError:  # it has no value yet
                continue
        return made


@contextmanager
def _undone(values: Sequence[Any]) -> Iterator[None]:
    """Put back the attributes of the user's objects, and the states of random numbers."""
    before = [(vars(x), dict(vars(x))) for x in values if _is_object(x)]
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        for attributes, kept in before:
            for name in attributes.keys() - kept.keys():
                del attributes[name]
            attributes.update(kept)


def _is_object(value: Any) -> bool:
    """Whether a value is an object of a class of the user's, whose attributes a trial may set."""
    kind = type(value)
    home = str(getattr(kind, "__module__", "")).partition(".")[0]
    if isinstance(value, (type, ModuleType, FunctionType)) or home in ("perspex", "jaxlib"):
        return False
    return type(getattr(value, "__dict__", None)) is dict


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `_TooLong` in the block once the process has computed for so long."""
    thread = threading.get_ident()
    is_over, is_asked, lock = threading.Event(), threading.Event(), threading.Lock()
    end = time.process_time() + _MOST_SECONDS

    def watch() -> None:
        while not is_over.wait(_LOOK):
            if time.process_time() > end:
                with lock:
                    if not is_over.is_set():
                        raise_in(thread, _TooLong)
                        is_asked.set()
                return

    threading.Thread(target=watch, name="trial of a remedy", daemon=True).start()
    try:
        yield
    finally:
        with lock:
            is_over.set()
        if is_asked.is_set():
            take_back()
