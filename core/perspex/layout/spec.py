"""Along which axes of a mesh an array is cut: `PartitionSpec`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from perspex.layout.abstract import UnreducedKind

NONE: frozenset[str] = frozenset()


class _Unconstrained:
    """Stands in a `PartitionSpec` for an axis that the compiler may cut as it likes."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each axis of an array the axes of a mesh that cut it.

    Args:
      *partitions: for each axis of the array the name of an axis of the mesh, a tuple of names
        (the first is the major one), `None` for an axis that is not cut, or
        `PartitionSpec.UNCONSTRAINED` for one that the compiler may cut. Axes at the end may be
        left out.
      unreduced: a set of axes of the mesh along which the devices hold parts of a sum that have not
        been added up.
      reduced: a set of axes along which all devices hold the same, and the cotangent is unreduced.
      unreduced_kind: how unreduced parts make up the whole; a sum if not given.

    Raises:
      TypeError: if a partition is anything else, or `unreduced` or `reduced` is no set.
      ValueError: if a name stands in two of `partitions`, `unreduced` and `reduced`.

    Two partitions may share a name, as the logical names of some libraries do. A sharding and a
    `shard_map` made from such a spec raise `ValueError`.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    >>> PartitionSpec(None, unreduced={"x"})
    P(None, unreduced={'x'}, unreduced_kind=sum)
    """

    __slots__ = ("_hash", "_partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED = UNCONSTRAINED

    def __init__(
        self,
        *partitions: Any,
        unreduced: Collection[str] = NONE,
        reduced: Collection[str] = NONE,
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        self._partitions = tuple([_partition(p) for p in partitions])
        self.unreduced = _names("unreduced", unreduced)
        self.reduced = _names("reduced", reduced)
        if self.unreduced and unreduced_kind is None:
            unreduced_kind = UnreducedKind.sum
        self.unreduced_kind: UnreducedKind | None = unreduced_kind
        if not self.unreduced and unreduced_kind is not None:
            raise ValueError(
                f"a PartitionSpec without unreduced axes has no unreduced_kind, got "
                f"{unreduced_kind}; leave it out"
            )
        self._check()
        self._hash = hash(self._key())

    def _check(self) -> None:
        cut = {name for names in self.names() for name in names or ()}
        twice = sorted((self.unreduced & self.reduced) | (cut & (self.unreduced | self.reduced)))
        if twice:
            raise ValueError(
                f"an axis of a mesh either cuts an axis of an array or is unreduced or reduced, "
                f"but {self} has {twice[0]!r} twice; name it once"
            )

    def check_cuts(self) -> None:
        """Raise `ValueError` if two axes of an array are to be cut along one axis of a mesh."""
        names = [name for names in self.names() for name in names or ()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"an axis of a mesh can cut one axis of an array, but {self} has "
                    f"{name!r} twice; name it once"
                )

    def _key(self) -> tuple[Any, ...]:
        return self._partitions, self.unreduced, self.reduced, self.unreduced_kind

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The partitions that were given, one for each axis that the spec mentions."""
        return self._partitions

    @property
    def is_plain(self) -> bool:
        """Whether no axis is unreduced or reduced."""
        return not self.unreduced and not self.reduced

    def names(self) -> list[tuple[str, ...] | None]:
        """For each axis that the spec mentions its names; `None` for one without constraint."""
        return [
            None if p is UNCONSTRAINED else () if p is None else (p,) if isinstance(p, str) else p
            for p in self._partitions
        ]

    def update(self, **changes: Any) -> PartitionSpec:
        """The spec with other `partitions`, `unreduced`, `reduced` or `unreduced_kind`."""
        unreduced = changes.get("unreduced", self.unreduced)
        return PartitionSpec(
            *changes.get("partitions", self._partitions),
            unreduced=unreduced,
            reduced=changes.get("reduced", self.reduced),
            unreduced_kind=changes.get(
                "unreduced_kind", self.unreduced_kind if unreduced else None
            ),
        )

    def to_ct_spec(self) -> PartitionSpec:
        """That of a cotangent: what is unreduced becomes reduced, and the other way round."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced, unreduced_kind=None)

    def to_tangent_spec(self) -> PartitionSpec:
        """That of a tangent: the same."""
        return self

    def to_lo(self) -> list[PartitionSpec]:
        """Those of the arrays that an array is made of: of itself alone."""
        return [self]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Any:
        self._refuse_sets("*spec")
        return iter(self._partitions)

    def __getitem__(self, i: Any) -> Any:
        self._refuse_sets("spec[...]")
        return self._partitions[i]

    def _refuse_sets(self, what: str) -> None:
        if not self.is_plain:
            raise ValueError(
                f"{what} leaves out the unreduced and reduced axes of {self}; use spec.partitions"
            )

    def index(self, value: Any) -> int:
        """Which axis of the array `value` cuts."""
        return self._partitions.index(_partition(value))

    def count(self, value: Any) -> int:
        """How many axes of the array `value` cuts."""
        return self._partitions.count(_partition(value))

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, tuple):
            return PartitionSpec(*self, *other)
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        return PartitionSpec(
            *self._partitions,
            *other._partitions,
            unreduced=self.unreduced | other.unreduced,
            reduced=self.reduced | other.reduced,
        )

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self) if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PartitionSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        inner = [repr(p) for p in self._partitions]
        for what in ("unreduced", "reduced"):
            names = sorted(getattr(self, what))
            if names:
                inner.append(f"{what}={{{', '.join(map(repr, names))}}}")
        if self.unreduced_kind is not None:
            inner.append(f"unreduced_kind={self.unreduced_kind.name}")
        return f"P({', '.join(inner)}{',' if len(inner) == len(self) == 1 else ''})"

    def __reduce__(self) -> Any:
        return _spec, self._key()


def _spec(
    partitions: Sequence[Any], unreduced: Any, reduced: Any, unreduced_kind: Any
) -> PartitionSpec:
    return PartitionSpec(
        *partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=unreduced_kind
    )


def _names(what: str, given: Any) -> frozenset[str]:
    if not isinstance(given, (set, frozenset)):
        raise TypeError(
            f"the argument {what} of a PartitionSpec is a set of names of mesh axes, got {given!r} "
            f"of type {type(given).__name__}"
        )
    return frozenset(given)


def _partition(given: Any) -> Any:
    if given is None or isinstance(given, str) or given is UNCONSTRAINED:
        return given
    if isinstance(given, (tuple, list)) and all(isinstance(name, str) for name in given):
        return given[0] if len(given) == 1 else tuple(given) if given else None
    raise TypeError(
        f"a PartitionSpec has names of mesh axes, tuples of names and None, got {given!r} of type "
        f"{type(given).__name__}"
    )
