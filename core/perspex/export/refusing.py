"""Which function could not take a symbolic dimension: the text of the error for the user."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from perspex import tree
from perspex.base import source
from perspex.base.dimensions import is_static
from perspex.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    TracerArrayConversionError,
)

_NEEDS_VALUES = (ConcretizationTypeError, TracerArrayConversionError)
# The names of functions of ours around others.
_WRAPPERS = ("call", "traced", "wrapped", "inner", "method", "transformed")


def _caused(error: BaseException | None) -> InconclusiveDimensionOperation | None:
    """The question about a dimension that an error comes from."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, InconclusiveDimensionOperation):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _is_named(name: str) -> bool:
    """Whether a function of ours has a name that tells a user something."""
    return not name.startswith(("_", "<")) and name not in _WRAPPERS


def _function(traceback: TracebackType | None) -> str:
    """The function that the user's code called last, as far as the traceback shows."""
    name, in_user_code = "", False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not source.is_internal(code.co_filename):
            name, in_user_code = "", True
        elif in_user_code and _is_named(code.co_name):
            name, in_user_code = code.co_name, False
        traceback = traceback.tb_next
    return name


def explained(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`, whose errors about symbolic dimensions name the function at fault."""
    shapes = [getattr(leaf, "shape", ()) for leaf in tree.leaves((args, kwargs))]
    is_symbolic = not all([is_static(shape) for shape in shapes])
    try:
        return f(*args, **kwargs)
    except Exception as error:
        cause, name = _caused(error), _function(error.__traceback__)
        if cause is None:
            if name and is_symbolic and isinstance(error, AttributeError):
                raise NotImplementedError(
                    f"`{name}` cannot take symbolic dimensions. Give them numbers in the "
                    "specification of the arguments of the exported function"
                ) from error
            if name and is_symbolic and isinstance(error, _NEEDS_VALUES):
                error.add_note(
                    f"The arguments have symbolic dimensions, and `{name}` may need their values. "
                    "Give them numbers in the specification of the arguments"
                )
            raise
        if not name or f"`{name}`" in str(error):
            raise
        raise InconclusiveDimensionOperation(f"`{name}`: {cause}") from error
