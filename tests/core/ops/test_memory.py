"""Values that a program moves between memories: derivatives, batches, and what refuses to mix.

What JAX makes of such programs is in `tests/oracle/cases/memory_types.txt`; here is what it refuses
and Perspex does not, held against the same program without moves.
"""

import pickle

import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex import checkpoint, device_put, grad, jit, lax, make_jaxpr, typeof, vmap
from perspex.ir.avals import ShapedArray
from perspex.layout.memories import MemorySpace, space_of
from perspex.memory import Space

X = jnp.arange(1.0, 4.0)
HOST = device_put(X, Space.Host)


def there(x):
    return device_put(x, Space.Host)


def back(x):
    return device_put(x, Space.Device)


PROGRAMS = {
    "square": lambda move, x: back(move(x) * move(x)).sum(),
    "sine": lambda move, x: back(jnp.sin(move(x))).sum(),
    "maximum": lambda move, x: back(jnp.maximum(move(x), move(2 * x))).sum(),
    "absolute": lambda move, x: back(abs(move(x) - move(2 + 0 * x))).sum(),
    "sum": lambda move, x: back(move(x).sum()) ** 2,
    "slice": lambda move, x: back(move(x)[1:] * move(x)[0]).sum(),
    "scan": lambda move, x: back(
        lax.scan(lambda c, _: (c * jnp.cos(c), c), move(x), None, length=3)[1]
    ).sum(),
    "cond": lambda move, x: back(
        lax.cond(x[0] > 0, jnp.sin, lambda v: jnp.cos(v) * 2, move(x))
    ).sum(),
    "checkpoint": lambda move, x: back(checkpoint(lambda v: jnp.sin(v) ** 2)(move(x))).sum(),
    "softmax": lambda move, x: (back(perspex.nn.softmax(move(x))) * jnp.arange(3)).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_derivatives_through_moves_are_those_without(name, wrap) -> None:
    f = PROGRAMS[name]
    found = wrap(grad(lambda x: f(there, x)))(X)
    wanted = grad(lambda x: f(lambda v: v, x))(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert typeof(found).memory_space is Space.Device


def test_the_derivative_of_a_value_of_the_host_lies_there() -> None:
    found = grad(lambda x: jnp.sin(x).sum())(HOST)
    np.testing.assert_allclose(found, np.cos(np.arange(1.0, 4.0)), rtol=1e-6)
    assert found.sharding.memory_kind == "pinned_host"
    assert typeof(found) is typeof(HOST)


def test_a_gradient_has_the_moves_that_its_types_need() -> None:
    jaxpr = make_jaxpr(grad(lambda x: back(there(x) * 3).sum()))(X)
    moves = [str(e.outvars[0].aval) for e in jaxpr.eqns if e.primitive.name == "device_put"]
    assert moves == ["float32<host>[3]", "float32[3]", "float32<host>[3]", "float32[3]"]


def test_second_derivatives_and_batches() -> None:
    def f(x):
        return back(there(x) ** 3).sum()

    second = vmap(grad(lambda x: grad(f)(x).sum()))(jnp.stack([X, 2 * X]))
    np.testing.assert_allclose(second, 6 * np.outer([1, 2], np.arange(1.0, 4.0)), rtol=1e-6)


@pytest.mark.parametrize("f", [jnp.add, jnp.dot, lambda x, y: jnp.concatenate([x, y])])
def test_an_error_names_both_types_and_the_way_out(f) -> None:
    with pytest.raises(ValueError, match=r"float32\[3\].*float32<host>\[3\]") as error:
        f(X, HOST)
    assert "device_put(x, jax.memory.Space.Device)" in str(error.value)


def test_a_loop_that_moves_its_carry_says_how_to_move_it_back() -> None:
    with pytest.raises(TypeError, match="memory spaces do not match") as error:
        lax.fori_loop(0, 2, lambda _, c: there(c), X)
    assert "jax.memory.Space.Device" in str(error.value)


def test_types_of_other_memories_are_interned_and_survive_pickling() -> None:
    aval = ShapedArray((3,), "float32", memory_space=Space.Host)
    assert aval is typeof(HOST) is pickle.loads(pickle.dumps(aval))
    assert aval is not ShapedArray((3,), "float32")
    assert aval.update(memory_space=Space.Device) is ShapedArray((3,), "float32")


def test_space_of() -> None:
    wanted = {"pinned_host": "Host", "unpinned_host": "Device", "device": "Device", None: "Device"}
    assert {kind: space_of(kind).name for kind in wanted} == wanted
    assert space_of(MemorySpace.Any) is MemorySpace.Any


def test_a_program_says_in_which_memory_its_arguments_and_results_lie() -> None:
    text = jit(lambda x: x * 2).lower(HOST).as_text()
    assert text.count('mhlo.memory_kind = "pinned_host"') == 2
    assert "memory_kind" not in jit(lambda x: x * 2).lower(X).as_text()


def test_arrays_of_both_memories_take_turns_in_one_function() -> None:
    f = jit(lambda x: x + 1)
    kinds = [f(x).sharding.memory_kind for x in (X, HOST, X, HOST, X, HOST)]
    assert kinds == [X.sharding.memory_kind, "pinned_host"] * 3


def test_the_primitive_is_public_and_refuses_what_only_device_put_takes() -> None:
    jaxpr = make_jaxpr(lambda x: device_put(x, Space.Host))(1.0).jaxpr
    (eqn,) = jaxpr.eqns
    assert eqn.primitive is lax.device_put_p
    # As an interpreter runs it again, with the parameters of the equation.
    again = make_jaxpr(lambda x: lax.device_put_p(x, **eqn.params))(1.0)
    assert str(again.jaxpr) == str(jaxpr) and "f32<host>[]" in str(again)
    with pytest.raises(TypeError, match="must be one memory space or sharding, got"):
        lax.device_put_p(np.float32(1), devices=(perspex.devices()[0],), copy_semantics=(None,))
