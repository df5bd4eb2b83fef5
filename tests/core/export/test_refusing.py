"""Errors about symbolic dimensions name the function at fault."""

from __future__ import annotations

import numpy as np
import pytest

import perspex
from perspex import export
from perspex import numpy as jnp
from perspex.errors import InconclusiveDimensionOperation


def test_the_function_that_was_called_last() -> None:
    spec = perspex.ShapeDtypeStruct(export.symbolic_shape("n, 4"), np.float32)
    with pytest.raises(InconclusiveDimensionOperation, match="^`unique`: Symbolic dimension"):
        export.export(perspex.jit(lambda x: jnp.unique(x, size=2)))(spec)


def test_other_errors_stay_as_they_are() -> None:
    spec = perspex.ShapeDtypeStruct(export.symbolic_shape("n, m"), np.float32)
    with pytest.raises(TypeError, match="n"):
        export.export(perspex.jit(lambda x: x @ x))(spec)
    with pytest.raises(KeyError):
        export.export(perspex.jit(lambda x: {}["a"]))(spec)
