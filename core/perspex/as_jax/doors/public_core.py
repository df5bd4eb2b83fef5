"""`jax.core`: the public part of what `jax.extend.core` has."""

from perspex.as_jax.doors.core import AbstractValue as AbstractValue
from perspex.as_jax.doors.core import Atom as Atom
from perspex.as_jax.doors.core import ClosedJaxpr as ClosedJaxpr
from perspex.as_jax.doors.core import Jaxpr as Jaxpr
from perspex.as_jax.doors.core import JaxprEqn as JaxprEqn
from perspex.as_jax.doors.core import Literal as Literal
from perspex.as_jax.doors.core import ParamDict as ParamDict
from perspex.as_jax.doors.core import Primitive as Primitive
from perspex.as_jax.doors.core import ShapedArray as ShapedArray
from perspex.as_jax.doors.core import Trace as Trace
from perspex.as_jax.doors.core import Tracer as Tracer
from perspex.as_jax.doors.core import Value as Value
from perspex.as_jax.doors.core import Var as Var
from perspex.as_jax.doors.core import ensure_compile_time_eval as ensure_compile_time_eval
from perspex.as_jax.doors.core import eval_context as eval_context
from perspex.as_jax.doors.core import eval_jaxpr as eval_jaxpr
from perspex.as_jax.doors.core import max_dim as max_dim
from perspex.as_jax.doors.core import min_dim as min_dim
from perspex.as_jax.doors.core import pytype_aval_mappings as pytype_aval_mappings
