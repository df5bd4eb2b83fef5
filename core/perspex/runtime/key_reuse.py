"""`debug_key_reuse`: an error when a typed random key is used twice.

With the flag set, C++ repeats no call, and each executable is asked before it runs which of its
keys its program *consumes*: draws from, or splits. `fold_in` and `clone` consume none, and what
moves keys (an element of an array of keys, say) makes a new name for one that is followed where it
is the whole key. A key that has been consumed is remembered by the array of its numbers.

Without the flag nothing is refused. A `watcher` that records what becomes of keys sees the first
runs of each program that consumes one. C++ repeats the later runs, until `tell_again`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex.base import source
from perspex.errors import KeyReuseError
from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, sub_jaxprs
from perspex.transforms.programs import by_program

# The consumed arrays of numbers by their ids, while they live.
_consumed: dict[int, Any] = {}

MOST_TOLD = 16
"""How many runs of a program the watcher sees until `tell_again`."""

watcher: Callable[[str, Any, None], object] | None = None
"""Gets the name of a program and a key that it consumes, before it runs; `None`: nobody asks."""


def tell(name: str, keys: Sequence[Any]) -> None:
    """Tell the watcher, if there is one, of the keys that a program consumes."""
    if watcher is not None:
        for key in keys:
            watcher(name, key, None)


# Programs that draw and that C++ repeats by now, with what has it ask Python again.
_repeated: weakref.WeakKeyDictionary[Any, weakref.WeakMethod[Callable[[], None]]] = (
    weakref.WeakKeyDictionary()
)


def repeated(executable: Any, ask_again: Callable[[], None]) -> None:
    """Note that the watcher does not see the runs of `executable` any more.

    `ask_again` is a method, which is not kept alive.
    """
    _repeated[executable] = weakref.WeakMethod(ask_again)


def tell_again() -> None:
    """Have the watcher see the next runs of all programs."""
    if not _repeated:
        return
    programs = list(_repeated.items())
    _repeated.clear()
    for executable, method in programs:
        executable.told = MOST_TOLD
        ask_again = method()
        if ask_again is not None:
            ask_again()


class Uses(NamedTuple):
    """What a program does with keys.

    `consumed` are the numbers of the arguments that it consumes; `passed` says for each result
    which argument it is, if it is one, and whether it is consumed.
    """

    consumed: frozenset[int]
    passed: tuple[tuple[int | None, bool], ...]


class _Reading:
    """A program that is read from top to bottom.

    With `raw`, uint32 arrays that become keys are followed like keys, which the flag does not do.
    """

    raw = False

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.root: dict[Any, Any] = {}
        self.consumed: dict[Any, JaxprEqn] = {}
        for eqn in jaxpr.eqns:
            self.read(eqn)
        places = {var: i for i, var in enumerate(jaxpr.invars)}
        found = [places[var] for var in self.consumed if var in places]
        self.captured = [i for i, var in enumerate(jaxpr.constvars) if var in self.consumed]
        self.uses = Uses(
            frozenset(found),
            tuple(
                [
                    (None, False)
                    if atom.__class__ is Literal
                    else (places.get(self.of(atom)), self.of(atom) in self.consumed)
                    for atom in jaxpr.outvars
                ]
            ),
        )

    def of(self, var: Any) -> Any:
        return self.root.get(var, var)

    def consume(self, atom: Any, eqn: JaxprEqn) -> None:
        var = self.of(atom)
        if not (var.aval.is_extended or self.raw):
            return
        if var in self.consumed:
            raise KeyReuseError(
                f"`{eqn.primitive.name}` at {source.summary(eqn.source)} uses a random key that "
                f"`{self.consumed[var].primitive.name}` at "
                f"{source.summary(self.consumed[var].source)} has used. {_REMEDY}"
            )
        self.consumed[var] = eqn

    def read(self, eqn: JaxprEqn) -> None:
        name = eqn.primitive.name
        if eqn.primitive.consumes_key:
            self.consume(eqn.invars[0], eqn)
        elif eqn.primitive.keeps_elements or (self.raw and name == "random_wrap"):
            if eqn.invars[0].__class__ is not Literal:
                self.root[eqn.outvars[0]] = self.of(eqn.invars[0])
        elif name == "scan":
            consts, carry = eqn.params["num_consts"], eqn.params["num_carry"]
            self.loop(eqn, eqn.params["jaxpr"], 0, consts, carry)
        elif name == "while":
            skipped, consts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
            carry = len(eqn.invars) - skipped - consts
            self.loop(eqn, eqn.params["body_jaxpr"], skipped, consts, carry)
        elif name == "cond":
            used = [self.inner(closed).consumed for closed in sub_jaxprs(eqn.params)]
            for i in frozenset[int]().union(*used):
                self.consume(eqn.invars[1 + i], eqn)
        elif eqn.primitive.higher_order and not eqn.params.get("differentiated"):
            # `checkpoint` computes again, for its derivative, what has been drawn once.
            for closed in sub_jaxprs(eqn.params):
                if len(closed.in_avals) == len(eqn.invars):
                    self.call(eqn, self.inner(closed))
                    break

    def inner(self, closed: ClosedJaxpr) -> Uses:
        return raw_uses_of(closed) if self.raw else uses_of(closed)

    def call(self, eqn: JaxprEqn, uses: Uses) -> None:
        for i in uses.consumed:
            self.consume(eqn.invars[i], eqn)
        for out, (given, is_consumed) in zip(eqn.outvars, uses.passed, strict=False):
            if given is not None and eqn.invars[given].__class__ is not Literal:
                self.root[out] = self.of(eqn.invars[given])
            elif is_consumed:
                self.consumed[out] = eqn

    def loop(self, eqn: JaxprEqn, body: ClosedJaxpr, skipped: int, consts: int, carry: int) -> None:
        uses = self.inner(body)
        for i in uses.consumed:
            if _is_kept(uses, i, consts, carry):
                raise KeyReuseError(
                    f"the body of the loop at {source.summary(eqn.source)} uses the same random "
                    f"key on each turn. {_REMEDY}"
                )
            self.consume(eqn.invars[skipped + i], eqn)


_REMEDY = (
    "The same key gives the same numbers. Make one key for each use with random.split, or a key "
    "for each turn with random.fold_in; random.clone(key) says that the repetition is intended."
)


@by_program
def uses_of(closed: ClosedJaxpr) -> Uses:
    """What a program does with keys. Raises `KeyReuseError` if it uses one twice."""
    return _Reading(closed.jaxpr).uses


class _RawReading(_Reading):
    raw = True


@by_program
def raw_uses_of(closed: ClosedJaxpr) -> Uses:
    """The same, where uint32 arrays count as keys too. Raises `KeyReuseError`."""
    return _RawReading(closed.jaxpr).uses


def _is_kept(uses: Uses, i: int, consts: int, carry: int) -> bool:
    """Whether a turn of a loop gets in the place `i` what the turn before got there."""
    if consts <= i < consts + carry:
        given, is_consumed = uses.passed[i - consts]
        return is_consumed or given is not None
    return i < consts


def captured_by(closed: ClosedJaxpr) -> list[Any]:
    """The keys that a program has captured and consumes; none if it uses one twice itself."""
    if not any(map(_may_be_key, [var.aval for var in closed.jaxpr.constvars])):
        return []
    try:
        return [closed.consts[i] for i in _RawReading(closed.jaxpr).captured]
    except KeyReuseError:
        return []


def drawn_with(closed: ClosedJaxpr) -> tuple[int, ...]:
    """Which arguments are keys that a program consumes; none if it uses one twice itself."""
    if not any(map(_may_be_key, closed.in_avals)):
        return ()
    try:
        return tuple(sorted(raw_uses_of(closed).consumed))
    except KeyReuseError:
        return ()


def _may_be_key(aval: ShapedArray) -> bool:
    return bool(aval.is_extended or aval.dtype == np.uint32)


def repeating(jaxpr: Jaxpr) -> Iterator[tuple[JaxprEqn, list[JaxprEqn]]]:
    """The loops in a program, at any depth, that draw with the same key on each turn.

    With each come the equations of its body that do.
    """
    for eqn in jaxpr.eqns:
        for closed in sub_jaxprs(eqn.params):
            yield from repeating(closed.jaxpr)
        if eqn.primitive.name == "scan":
            body, consts = eqn.params["jaxpr"], eqn.params["num_consts"]
            carry = eqn.params["num_carry"]
        elif eqn.primitive.name == "while":
            body, consts = eqn.params["body_jaxpr"], eqn.params["body_nconsts"]
            carry = len(eqn.outvars)
        else:
            continue
        try:
            read = _RawReading(body.jaxpr)
        except KeyReuseError:
            continue
        kept = [i for i in read.uses.consumed if _is_kept(read.uses, i, consts, carry)]
        if kept:
            yield eqn, [read.consumed[body.jaxpr.invars[i]] for i in kept]


def checked(
    name: str, closed: ClosedJaxpr, args: Sequence[Any], run: Callable[[Any], list[Any]]
) -> list[Any]:
    """`run(args)` of a program that consumes none of its keys a second time.

    Raises `KeyReuseError` otherwise.
    """
    uses = uses_of(closed)
    used = [args[i].base for i in sorted(uses.consumed) if hasattr(args[i], "base")]
    given: set[int] = set()
    for numbers in used:
        if id(numbers) in _consumed or id(numbers) in given:
            raise KeyReuseError(
                f"`{name}` at {source.summary(source.capture())} was given a random key that has "
                f"been used before. {_REMEDY}"
            )
        given.add(id(numbers))
    outs = run(args)
    gone = [
        out.base for out, (_, is_consumed) in zip(outs, uses.passed, strict=True) if is_consumed
    ]
    for numbers in (*used, *gone):
        _note(numbers)
    return outs


def _note(numbers: Any) -> None:
    key = id(numbers)
    _consumed[key] = weakref.ref(numbers, lambda gone: _consumed.pop(key, None))
