"""The pieces of the tracing core that programs may build on: `jax.core`."""

from perspex.api.waiting import ensure_compile_time_eval as ensure_compile_time_eval
from perspex.ir.avals import ShapedArray as ShapedArray
from perspex.ir.jaxpr import Atom as Atom
from perspex.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from perspex.ir.jaxpr import Jaxpr as Jaxpr
from perspex.ir.jaxpr import JaxprEqn as JaxprEqn
from perspex.ir.jaxpr import Literal as Literal
from perspex.ir.jaxpr import Var as Var
from perspex.tracing.primitive import Primitive as Primitive
from perspex.tracing.staging import eval_jaxpr as eval_jaxpr
from perspex.tracing.trace import Trace as Trace
from perspex.tracing.trace import Tracer as Tracer

eval_context = ensure_compile_time_eval
