"""Functions with derivatives of their own, and what their rules are written with."""

from perspex.rules.closures import closure_convert as closure_convert
from perspex.rules.closures import custom_gradient as custom_gradient
from perspex.rules.custom_call import custom_jvp_call as custom_jvp_call_p  # noqa: F401
from perspex.rules.custom_call import custom_vjp_call as custom_vjp_call_p  # noqa: F401
from perspex.rules.custom_jvp import custom_jvp as custom_jvp
from perspex.rules.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from perspex.rules.custom_vjp import custom_vjp as custom_vjp
from perspex.rules.custom_vjp import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from perspex.rules.custom_vjp import zero_from_primal as zero_from_primal
from perspex.rules.linear import linear_call as linear_call
from perspex.rules.zeros import SymbolicZero as SymbolicZero
