"""The pieces of the tracing core that programs may build on: `jax.core`."""

from perspex.api.values import ensure_compile_time_eval as ensure_compile_time_eval
from perspex.avals import ShapedArray as ShapedArray
from perspex.jaxpr import Atom as Atom
from perspex.jaxpr import ClosedJaxpr as ClosedJaxpr
from perspex.jaxpr import Jaxpr as Jaxpr
from perspex.jaxpr import JaxprEqn as JaxprEqn
from perspex.jaxpr import Literal as Literal
from perspex.jaxpr import Var as Var
from perspex.staging import eval_jaxpr as eval_jaxpr
from perspex.tracing import Primitive as Primitive
from perspex.tracing import Trace as Trace
from perspex.tracing import Tracer as Tracer

eval_context = ensure_compile_time_eval
