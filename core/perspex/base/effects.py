"""What an operation does beyond its results: the kinds of effects.

An equation with an effect stays in its program even if nobody reads its results. Effects that are
*ordered* happen in the order in which the program has them, across compiled calls too
(`transforms.sequence`); of the others only the number is certain.

Which effects an operation has is for its primitive to say (`tracing.Primitive.effects`); a program
has those of its equations (`jaxpr.Jaxpr.effects`).
"""

from __future__ import annotations


class Effect:
    """A kind of effect. `ordered`: its occurrences keep the order of the program."""

    __slots__ = ("name", "ordered")

    def __init__(self, name: str, ordered: bool) -> None:
        self.name = name
        self.ordered = ordered

    def __repr__(self) -> str:
        return self.name


class DebugEffect(Effect):
    """The effect of `debug.print` and its kin."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("Debug", False)


class OrderedDebugEffect(Effect):
    """The effect of `debug.print` and its kin where these keep their order."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("OrderedDebug", True)


Effects = frozenset[Effect]

no_effects: Effects = frozenset()
# Something for a person to see: it may run again where a transform computes a value again.
debug = DebugEffect()
ordered_debug = OrderedDebugEffect()
# Something that the world sees: it happens exactly as often as the program says.
io = Effect("IO", False)
ordered_io = Effect("OrderedIO", True)
# A call of a compiled function that says that it has an effect.
ffi = Effect("FFI", False)
# An exception if something is wrong: `checkify` makes it a result.
check = Effect("Check", False)
# Reads or writes a mutable array. Programs that are lowered or transformed have none of it
# (`transforms.discharge`).
state = Effect("State", False)

# Nothing but that the value stays in the program although nobody reads it.
kept = Effect("Kept", False)
_SILENT = frozenset([kept])


def happens(effects: Effects) -> bool:
    """Whether something is done while the program runs."""
    return not effects <= _SILENT


def has_order(effects: Effects) -> bool:
    """Whether one of the effects is ordered."""
    return any(effect.ordered for effect in effects)


def is_io(effects: Effects) -> bool:
    """Whether one of the effects is more than debugging."""
    return io in effects or ordered_io in effects
