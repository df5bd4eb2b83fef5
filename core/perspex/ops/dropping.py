"""Scatters that leave out some windows on purpose: `checkify` finds nothing wrong with those."""

from __future__ import annotations

from typing import Any

from perspex.ops.indexing import Scatter, ScatterAdd


class DroppingScatter(Scatter):
    """`scatter` for indices some of which are meant to be out of bounds."""

    name = "scatter_inside"

    def checked(self, checks: Any, *operands: Any, **params: Any) -> Any:
        return self(*operands, **params)


class DroppingScatterAdd(ScatterAdd):
    """`scatter_add` for indices some of which are meant to be out of bounds."""

    name = "scatter_add_inside"

    def checked(self, checks: Any, *operands: Any, **params: Any) -> Any:
        return self(*operands, **params)


scatter_inside = DroppingScatter()
scatter_add_inside = DroppingScatterAdd()
