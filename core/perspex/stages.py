"""The stages between a function and its executable: `jax.stages`."""

from perspex.api.stages import ArgInfo as ArgInfo
from perspex.api.stages import Compiled as Compiled
from perspex.api.stages import CompilerOptions as CompilerOptions
from perspex.api.stages import Lowered as Lowered
from perspex.api.stages import Traced as Traced
from perspex.api.stages import Wrapped as Wrapped
