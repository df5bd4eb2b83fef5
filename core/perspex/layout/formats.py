"""In which order the memory of an array has its axes: `jax.experimental.layout`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perspex.base import xla


class AutoLayout:
    """Stands for a layout that the compiler chooses."""

    def __repr__(self) -> str:
        return "AutoLayout"


class Layout:
    """The order of the axes in memory, and how they are tiled.

    Args:
      major_to_minor: the axes, from the one whose neighbours are farthest apart to the one whose
        neighbours are next to each other.
      tiling: the sizes of tiles; `None` for those of the platform.
      sub_byte_element_size_in_bits: the size of elements that are smaller than a byte.

    >>> Layout((0, 1))
    Layout(major_to_minor=(0, 1), tiling=None, sub_byte_element_size_in_bits=0)
    """

    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")
    AUTO = AutoLayout()

    def __init__(
        self,
        major_to_minor: Sequence[int],
        tiling: Sequence[Sequence[int]] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple([tuple(tile) for tile in tiling])
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    @property
    def is_usual(self) -> bool:
        """Whether the axes are in the order of the shape, without tiles: as arrays here are."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor))) and not self.tiling

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise `ValueError` for an array with another number of axes."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                f"{self} is for arrays with {len(self.major_to_minor)} axes, got one of shape "
                f"{tuple(aval_shape)}; name each axis once"
            )

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """The layout that jaxlib says an array or an executable has."""
        found = pjrt_layout._xla_layout()
        order = found.minor_to_major()[::-1]
        return Layout(order, found.tiling(), found.element_size_in_bits())

    @staticmethod
    def for_array(x: Any) -> Layout:
        """The usual layout of an array, or of anything with a shape."""
        return Layout(tuple(range(len(x.shape))), tiling=())

    def update(self, **changes: Any) -> Layout:
        """The layout with other values."""
        names = "major_to_minor", "tiling", "sub_byte_element_size_in_bits"
        return Layout(*[changes.get(name, getattr(self, name)) for name in names])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """A layout and a sharding: how an array lies in memory, and where.

    Args:
      layout: a `Layout`, `Layout.AUTO`, or `None` for the usual one.
      sharding: a sharding; needed beside a `Layout`.

    Raises:
      ValueError: for a layout without a sharding.
      TypeError: for anything else.

    >>> import perspex.numpy as pnp
    >>> pnp.zeros((2, 3)).format.layout.major_to_minor
    (0, 1)
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        if not isinstance(layout, (Layout, AutoLayout, type(None))):
            raise TypeError(
                f"a Format has a Layout, Layout.AUTO or None as its layout, got {layout!r} of "
                f"type {type(layout).__name__}"
            )
        if not isinstance(sharding, (xla.Sharding, type(None))):
            raise TypeError(
                f"a Format has a sharding or None beside its layout, got {sharding!r} of type "
                f"{type(sharding).__name__}"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                f"{layout} says how an array lies in memory, but not on which devices: pass a "
                "sharding, such as that of an array"
            )
        self.layout, self.sharding = layout, sharding

    def place(self) -> Any:
        """The sharding. Raises `NotImplementedError` if the layout is not the usual one."""
        if isinstance(self.layout, Layout) and not self.layout.is_usual:
            raise NotImplementedError(
                f"arrays have their axes in the order of the shape here, so {self.layout} cannot "
                "be had; transpose the array, or leave the layout to the compiler (Layout.AUTO)"
            )
        return self.sharding

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Format):
            return False
        return (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"
