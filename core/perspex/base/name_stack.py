"""The names around an equation: scopes that the user opened, and transformations that ran there.

A stack is interned, so that equal stacks are one object, and it holds the sources that lie in it:
`stack[source]` is the source with these names inside of the names around it. That is the question
of every equation traced inside a scope or a derivative, and it costs one look into a `dict`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_MOST = 10_000


class Transform(NamedTuple):
    """A transformation among the names: it is written round the next name, `jvp(layer)`."""

    name: str


class Attributes(NamedTuple):
    """Attributes of the operations inside, pairs of texts: not a name, it is not written."""

    pairs: tuple[tuple[str, str], ...]


Piece = str | Transform | Attributes


class NameStack(dict[Any, Any]):
    """Names from the outermost to the innermost: a text is a scope's, a `Transform` is one.

    `attributes` are those of all operations there; the inner ones hide outer ones of their names.

    The entries of the `dict` are sources without these names, and the same with them.
    """

    __slots__ = ("_inner", "attributes", "inside", "pieces", "text")

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        self.pieces = pieces
        self.text = _text(pieces)
        self._inner: dict[Piece, NameStack] = {}
        self.inside = Inside(self)
        held = [pair for piece in pieces if isinstance(piece, Attributes) for pair in piece.pairs]
        self.attributes = tuple(dict(held).items())

    def __missing__(self, source: Any) -> Any:
        if source is None:
            return None
        if len(self) >= _MOST:
            self.clear()
        return self.setdefault(source, source.inside(self) if self.pieces else source)

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __reduce__(self) -> tuple[Any, ...]:
        return stack_of, self.pieces

    @property
    def program(self) -> NameStack:
        """What a program has that is traced here: the attributes, and no names."""
        return stack_of(Attributes(self.attributes)) if self.attributes else NO_NAMES

    def within(self, piece: Piece) -> NameStack:
        """With one name more inside; an empty one changes nothing."""
        if not piece:
            return self
        found = self._inner.get(piece)
        if found is None:
            if len(self._inner) >= _MOST:
                self._inner.clear()
            found = self._inner.setdefault(piece, NameStack((*self.pieces, piece)))
        return found

    def holding(self, inner: NameStack) -> NameStack:
        """With all names of `inner` inside."""
        found = self
        for piece in inner.pieces:
            found = found.within(piece)
        return found


class Inside(dict[Any, Any]):
    """Sources by the same with the names of a stack, and perhaps more inside of those.

    `stack.inside[stack[source]]` is `source`.
    """

    __slots__ = ("_outer",)

    def __init__(self, outer: NameStack) -> None:
        self._outer = outer

    def __missing__(self, source: Any) -> Any:
        if source is None:
            return None
        if len(self) >= _MOST:
            self.clear()
        outer, names = self._outer.pieces, source.names.pieces
        count = len(outer) if names[: len(outer)] == outer else 0
        return self.setdefault(source, stack_of(*names[count:])[source.plain])


def _text(pieces: tuple[Piece, ...]) -> str:
    """The path that locations show: `jvp(encoder)/attention`."""
    names: list[str] = []
    for piece in reversed(pieces):
        if isinstance(piece, Transform):
            names[-1:] = [f"{piece.name}({names[-1] if names else ''})"]
        elif isinstance(piece, str):
            names.append(piece)
    return "/".join(reversed(names))


NO_NAMES = NameStack(())


def stack_of(*pieces: Piece) -> NameStack:
    """The stack with these names.

    >>> from perspex.base.name_stack import Transform, stack_of
    >>> stack_of("model", Transform("vmap"), Transform("jvp"), "layer", "sin").text
    'model/vmap(jvp(layer))/sin'
    """
    found = NO_NAMES
    for piece in pieces:
        found = found.within(piece)
    return found
