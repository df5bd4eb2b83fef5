"""Everything that you need to define a primitive outside the package.

A primitive is an object of a class derived from `Primitive`, whose methods are its rules; the
docstring of `Primitive` is the contract, and `docs/primitives.md` walks through two examples.

`Primitive`, `HigherOrder`: the bases; the second for calls, loops and branches.
`ShapedArray`, `typeof`: the type of an array, and that of any value.
`Linear`, `is_linear`: what stands in a `transpose` rule for an operand in which it is linear.
`zeros`, `zeros_like`, `full_like`, `scalar_like`: numbers of the right dtype, for rules.
`move_axis`, `to_front`: batch axes where a `batch` rule wants them.
`attribute`, `integers`: attributes of the operations that a `lower` rule emits.
`Builder`: what it emits them with.
"""

from perspex.hlo.builder import Builder as Builder
from perspex.hlo.types import attribute as attribute
from perspex.hlo.types import integers as integers
from perspex.ir.avals import ShapedArray as ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from perspex.ir.jaxpr import Jaxpr as Jaxpr
from perspex.ir.jaxpr import JaxprEqn as JaxprEqn
from perspex.ir.jaxpr import Literal as Literal
from perspex.ir.jaxpr import Var as Var
from perspex.ops.structural import full_like as full_like
from perspex.ops.structural import is_linear as is_linear
from perspex.ops.structural import move_axis as move_axis
from perspex.ops.structural import scalar_like as scalar_like
from perspex.ops.structural import to_front as to_front
from perspex.ops.structural import zeros as zeros
from perspex.ops.structural import zeros_like as zeros_like
from perspex.tracing.primitive import Linear as Linear
from perspex.tracing.primitive import Primitive as Primitive
from perspex.tracing.trace import Tracer as Tracer
from perspex.tracing.trace import typeof as typeof
from perspex.transforms.higher_order import HigherOrder as HigherOrder
