"""Modules in one, tokens and calls, as libraries write them. The program ran on jax 0.12."""

from __future__ import annotations

from as_jax_programs import check

PROGRAM = """
import importlib, jax, jax.numpy as jnp, numpy as np
from jax.extend import core, linear_util as lu
from jax.extend.core import Primitive, primitives
from jax.interpreters import batching, mlir
called = Primitive("called"); called.multiple_results = True
primitives.register_call_primitive_rules(called)
def f(x):
    program = jax.make_jaxpr(lambda x: [jnp.square(x) * 2.0])(x)
    return called.bind(x, call_jaxpr=program)[0]
print(f(1.0), jax.grad(f)(1.0), jax.vmap(f)(jnp.ones(2)))
other = core.create_call_primitive("other")
print(float(other.bind(jnp.float32(2.0), call_jaxpr=jax.make_jaxpr(lambda x: [x + 1])(1.0))[0]))
inside = importlib.import_module("jax._src.interpreters.batching")
tag = importlib.import_module("jax._src.core").TraceTag()
d = jax.api_util.debug_info("test", lambda x, y: [x, y], (1.0, 1.0), {})
fun, axes = batching.batch_subtrace(
    lu.wrap_init(lambda x, y: [x * y, y], debug_info=d),
    tag, inside.AxisData(None, 3, None, None), (0, None))
print(fun.call_wrapped(jnp.arange(3.0), 2.0), axes())
ir = mlir.ir
with mlir.make_ir_context(), ir.Location.unknown():
    print(mlir.token_type())
    whole = "module { func.func @main() { %s return } func.func private @f() { return } }"
    a, b = ir.Module.parse(whole % ""), ir.Module.parse(whole % "call @f() : () -> ()")
    table = ir.SymbolTable(a.operation)
    print(mlir.merge_mlir_modules(a, "main", b, table), "f_0" in table)
    print([op.sym_name.value for op in a.body.operations], "call @f_0()" in str(a))
t = mlir.TokenSet({"a": 1, "b": 2})
print(list(t.items()), sorted(t.effects()), list(t.subset(["a"]).items()), len(t), t.get("a"))
print(list(t.update_tokens(mlir.TokenSet({"a": 3})).items()))
class Seven: pass
mlir.register_constant_handler(Seven, lambda val, aval=None: mlir.ir_constant(np.float32(7)))
p = Primitive("p"); p.def_abstract_eval(lambda x: x)
mlir.register_lowering(p, lambda ctx, x: [mlir.ir_constant(Seven())])
q = Primitive("q"); q.def_abstract_eval(lambda x: x)
three = jax.make_jaxpr(lambda x: x * 3)(1.0)
mlir.register_lowering(
    q, lambda ctx, x: mlir.core_call_lowering(ctx, x, name="three", call_jaxpr=three))
print(jax.jit(p.bind)(1.0), jax.jit(q.bind)(2.0))
print(mlir.DEVICE_TO_DEVICE_TYPE, mlir.SEND_TO_HOST_TYPE, mlir.RECV_FROM_HOST_TYPE)
one = mlir.ShardingContext(2)
print(one, isinstance(one, mlir.AxisContext), mlir.SPMDAxisContext(None).manual_axes)
"""

EXPECTED = """
2.0 4.0 [2. 2.]
3.0
(Array([0., 2., 4.], dtype=float32), 2.0) (0, None)
!stablehlo.token
main_0 True
['main', 'f', 'main_0', 'f_0'] True
[('a', 1), ('b', 2)] ['a', 'b'] [('a', 1)] 2 1
[('a', 3), ('b', 2)]
7.0 6.0
1 2 3
ShardingContext(num_devices=2, device_assignment=None, abstract_mesh=None) True frozenset()
"""


def test_calls_batches_and_modules(tmp_path) -> None:
    check(PROGRAM, EXPECTED, tmp_path)
