"""The types that public functions write for what they take and return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Array = Any
ArrayLike = Any
DTypeLike = Any
Axis = int | Sequence[int] | None
Shape = Sequence[int]
Placement = Any  # a device or a sharding
