"""`checkpoint` and what belongs to it: names for values, policies, and what is stored."""

from perspex import checkpoint_policies as checkpoint_policies
from perspex.api.remat import checkpoint as checkpoint
from perspex.api.remat import checkpoint_name as checkpoint_name
from perspex.api.remat import print_saved_residuals as print_saved_residuals
from perspex.control.remat import Offloadable as Offloadable
from perspex.control.remat import Recompute as Recompute
from perspex.control.remat import Saveable as Saveable
from perspex.ops.names import name_p as name_p

remat = checkpoint
# The name in JAX of what `custom_vjp` of its functions calls in forward mode.
checkpoint_name_fwd = checkpoint_name
