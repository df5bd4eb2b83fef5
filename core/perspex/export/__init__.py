"""Functions as programs in files, in the format of JAX, also for shapes that are not known yet."""

from perspex.base.public import publish as _publish
from perspex.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from perspex.export.exported import Exported as Exported
from perspex.export.exported import default_export_platform as default_export_platform
from perspex.export.exported import deserialize as deserialize
from perspex.export.exported import export as export
from perspex.export.exported import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from perspex.export.exported import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from perspex.export.scopes import SymbolicScope as SymbolicScope
from perspex.export.symbolic import is_symbolic_dim as is_symbolic_dim
from perspex.export.symbolic import symbolic_args_specs as symbolic_args_specs
from perspex.export.symbolic import symbolic_dim_bounds as symbolic_dim_bounds
from perspex.export.symbolic import symbolic_shape as symbolic_shape
from perspex.export.trees import (
    register_namedtuple_serialization as register_namedtuple_serialization,
)
from perspex.export.trees import (
    register_pytree_node_serialization as register_pytree_node_serialization,
)

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_dim_bounds",
    "symbolic_shape",
]  # fmt: skip

_publish(globals())
