"""The stages between a function and its executable: `jax.stages`."""

from perspex.api.stages import Compiled as Compiled
from perspex.api.stages import Lowered as Lowered
from perspex.api.stages import Traced as Traced
