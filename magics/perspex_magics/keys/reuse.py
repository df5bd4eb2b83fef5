"""The line under a cell in which a key was used a second time, or by each turn of a loop.

The record of random calls says which. What is told once is not told again: the same two lines may
mean it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

from perspex import random
from perspex.base import events, source
from perspex.random.lineage import Call, Recorder
from perspex.runtime import key_reuse
from perspex_magics.display import notices, units
from perspex_magics.keys.lineage import Key, Keys, expression_at, place_of
from perspex_magics.keys.names import Names
from perspex_magics.keys.record import Record
from perspex_magics.session import Session

# How many lines of a key are named.
_MOST_PLACES = 3
# Keys that are so many more than the calls kept are read again, from those calls.
_MOST_BEHIND = 5_000


class Use(NamedTuple):
    """A line that used a key, and how often; a program may have used it more often than `times`."""

    text: str
    place: str
    times: int
    is_program: bool

    @property
    def is_least(self) -> bool:
        """Whether there may have been more."""
        return self.is_program and self.times >= key_reuse.MOST_TOLD


class Reuse(NamedTuple):
    """A key that was used more than once. `are_equal`: with certainly the same results."""

    name: str
    made: str
    uses: list[Use]
    are_equal: bool

    def __str__(self) -> str:
        total = units.count(sum([use.times for use in self.uses]))
        if any([use.is_least for use in self.uses]):
            total = f"at least {total}"
        made = f" ({self.made})" if self.made else ""
        listed = [
            f"`{use.text}` at {use.place}"
            + (f" ({units.count(use.times)} times)" if use.times > 1 and len(self.uses) > 1 else "")
            for use in self.uses[:_MOST_PLACES]
        ]
        if len(self.uses) > _MOST_PLACES:
            listed.append(f"{len(self.uses) - _MOST_PLACES} more lines")
        results = "The results are equal" if self.are_equal else "The results are not independent"
        return (
            f"`{self.name}`{made} was used {total} times, by "
            f"{' and '.join(listed)}. {results}. Use a new key for each, from "
            "`random.split(key)`, or `random.clone(key)` if you mean it."
        )


class Watch:
    """Looks after each cell at the calls that it added to the record."""

    def __init__(self, record: Record, names: dict[str, Any]) -> None:
        self.record, self.names = record, names
        self.is_quiet = False
        # Which calls are known: those of a recorder, so many of them.
        self._of: Recorder | None = None
        self._seen = 0
        self._keys = Keys(record.is_current)
        self._told: set[Any] = set()
        self._loops: list[Any] = []

    def hear(self, event: events.Event) -> None:
        """Note the loops in a program that has been traced."""
        kept = event.data["program"]
        program = kept and kept()
        if program is not None and self.record.recorder is not None:
            jaxpr = getattr(program, "jaxpr", program)
            self._loops += [
                (eqn.source, [draw.source for draw in draws])
                for eqn, draws in key_reuse.repeating(jaxpr)
            ]

    def end_cell(self, result: Any) -> None:
        """Tell of the keys and loops of a cell that has ended."""
        key_reuse.tell_again()
        loops, self._loops = self._loops, []
        recorder = self.record.recorder
        if recorder is None:
            return
        # A cell without random calls costs this comparison.
        is_same = recorder is self._of and recorder.total == self._seen
        if is_same and not loops and not recorder.unmapped:
            return
        keys = [] if is_same else self._new_uses(recorder)
        unmapped = list(recorder.unmapped)
        recorder.unmapped.clear()
        if self.is_quiet:
            return
        meant = self._meant(keys) if loops else set()
        told = [str(reuse) for reuse in self._fresh(keys)]
        told += [
            f"The loop at {place} uses the same random key on each turn, so every turn draws the "
            "same numbers. Make a key for each turn, with `random.fold_in` or `random.split`."
            for place in dict.fromkeys(
                [
                    source.summary(at)
                    for at, draws in loops
                    if not all(draw and draw.frame in meant for draw in draws)
                ]
            )
            if self._is_new(place)
        ]
        told += [
            f"`{text}` at {place} draws with the same key for each example of a `vmap`, so all "
            "examples get the same numbers. Map over keys from `random.split(key, n)`, or use "
            "`random.reuse(key)` if you mean it."
            for text, place in dict.fromkeys(
                [
                    (_of_line(expression_at(at), "A draw"), source.summary(at))
                    for numbers, at in unmapped
                    if numbers is None or not any(key.is_meant for key in self._keys.find(numbers))
                ]
            )
            if self._is_new(("vmap", place))
        ]
        if told:
            notices.warn("keyreuse", told, "Key reuse", "%keys")

    def _meant(self, keys: Iterable[Key]) -> set[Any]:
        """The lines that used keys which are meant to be used again."""
        return {call.at.frame for key in keys if key.is_meant for call in key.uses if call.at}

    def _new_uses(self, recorder: Recorder) -> list[Key]:
        """The keys that were used since the last time, if they were used before."""
        if recorder is not self._of or self._seen > recorder.total:
            self._of, self._seen = recorder, 0
        behind = len(self._keys.keys) - len(recorder.calls) if self._seen else 0
        if not self._seen or behind > _MOST_BEHIND:
            self._keys = Keys(self.record.is_current)
            self._seen = recorder.forgotten
        used: dict[int, Key] = {}
        for call in recorder.since(self._seen):
            # Nothing waits for a device here: the rest is looked at after another cell.
            if not (_is_there(call.given) and _is_there(call.made)):
                break
            self._seen += 1
            for key in self._keys.add(call):
                used[id(key)] = key
        return list(used.values())

    def _fresh(self, keys: Iterable[Key]) -> list[Reuse]:
        """What is to be told of keys, and has not been."""
        names = None
        found = []
        for key in keys:
            calls = self._keys.misuses(key)
            if not calls:
                continue
            lines: dict[Any, list[Call]] = {}
            for call in calls:
                lines.setdefault(_line(call), []).append(call)
            if not self._is_new(frozenset(lines)):
                continue
            names = names or Names(self._keys, self.names)
            uses = [
                Use(_text(same[0]), place_of(same[0]), len(same), not _is_public(same[0]))
                for same in lines.values()
            ]
            made = "" if key.made is None else place_of(key.made)
            found.append(Reuse(names.of(key), made, uses, _are_equal(calls)))
        return found

    def _is_new(self, what: Any) -> bool:
        if what in self._told:
            return False
        self._told.add(what)
        return True


def _is_there(numbers: Any) -> bool:
    """Whether the numbers of keys can be read without waiting."""
    is_ready = getattr(numbers, "is_ready", None)
    return is_ready is None or numbers.is_deleted() or is_ready()


def _line(call: Call) -> Any:
    """What says that two calls are the same line, also after the cell was edited elsewhere."""
    return call.run and call.run[0], expression_at(call.at) or (call.function, place_of(call))


def _is_public(call: Call) -> bool:
    """Whether a random function was called, and not a program that draws."""
    return hasattr(random, call.function)


def _text(call: Call) -> str:
    return _of_line(expression_at(call.at), call.function)


def _of_line(text: str, otherwise: str) -> str:
    return text if text and len(text) <= 60 else otherwise


def _are_equal(calls: list[Call]) -> bool:
    """Whether calls certainly draw the same: the same function with the same literal arguments."""
    texts = {expression_at(call.at) for call in calls}
    if len(texts) > 1 or len({call.function for call in calls}) > 1:
        return False
    if not _is_public(calls[0]):
        return False
    try:
        tree = ast.parse(texts.pop(), mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(tree, ast.Call):
        return False
    given = [*tree.args[1:], *[word.value for word in tree.keywords if word.arg != "key"]]
    return all(isinstance(node, _LITERAL) for value in given for node in ast.walk(value))


_LITERAL = (ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.USub, ast.Load)


def watch_keys(session: Session, record: Record) -> Watch:
    """Tell under each cell of the keys that it used again."""
    watch = session.keep(Watch(record, session.shell.user_ns))
    session.on_unload(events.subscribe(watch.hear, ["trace"]))
    session.on_cell(end=watch.end_cell)
    return watch
