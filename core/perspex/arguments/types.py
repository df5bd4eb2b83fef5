"""The types that public functions write for what they take and return."""

from __future__ import annotations

from typing import TypeAlias

from perspex.runtime.array import Array as Array
from perspex.runtime.client import Device
from perspex.sharding import Sharding
from perspex.tracing.array_type import Axis as Axis
from perspex.tracing.array_type import DTypeLike as DTypeLike
from perspex.tracing.array_type import NumPyLike
from perspex.tracing.array_type import Shape as Shape

ArrayLike: TypeAlias = Array | NumPyLike
Placement: TypeAlias = Device | Sharding | None
