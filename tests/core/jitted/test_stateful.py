"""Jitted functions of refs: one program, memory in place, and no cost without refs."""

from __future__ import annotations

import numpy as np
import pytest

from perspex import events, grad, jit, lax, new_ref, vmap
from perspex import numpy as jnp


def test_one_program_for_all_calls() -> None:
    ref = new_ref(jnp.zeros(3))
    step = jit(lambda x: ref.addupdate(x))
    found = []
    stop = events.subscribe(found.append, kinds=["trace", "compile"])
    try:
        for _ in range(3):
            step(jnp.ones(3))
            ref[0]
            ref[...]
    finally:
        stop()
    assert ref[...].tolist() == [3, 3, 3]
    assert [e.name for e in found if e.kind == "trace"].count("<lambda>") == 1


def test_memory_is_used_again() -> None:
    ref = new_ref(jnp.zeros(1000))
    step = jit(lambda: ref.addupdate(jnp.ones(1000)))
    step()
    held = ref._value
    step()
    assert held.is_deleted()
    kept = ref[...]
    step()
    assert kept[0] == 2 and ref[0] == 3


def test_a_ref_that_is_read_is_not_donated() -> None:
    ref = new_ref(jnp.zeros(3))
    read = jit(lambda: ref[...] + 1)
    read()
    held = ref._value
    read()
    assert not held.is_deleted()
    assert ref.writes == 0


def test_another_ref_of_the_same_type_needs_no_program() -> None:
    def double(ref):
        ref[...] *= 2

    f = jit(double)
    first, second = new_ref(jnp.ones(2)), new_ref(jnp.ones(2) * 5)
    f(first)
    f(second)
    assert first[...].tolist() == [2, 2] and second[...].tolist() == [10, 10]


def test_captured_and_passed_at_once() -> None:
    a, b = new_ref(jnp.ones(2)), new_ref(jnp.zeros(2))
    c = jnp.arange(2.0)

    @jit
    def f(given, x):
        given[...] += a[...] * x
        a[0] = 7.0
        return given[...] + c

    assert f(b, 3.0).tolist() == [3, 4]
    assert a[...].tolist() == [7, 1] and b[...].tolist() == [3, 3]
    assert f(b, 1.0).tolist() == [10, 5]


def test_a_call_that_fails_changes_nothing() -> None:
    ref = new_ref(jnp.ones(2))

    def f():
        ref[...] = jnp.zeros(2)
        raise KeyError("no")

    with pytest.raises(KeyError):
        jit(f)()
    assert ref[...].tolist() == [1, 1]


def test_deep_in_programs() -> None:
    """A ref written in a scan in a cond in a jitted function, under jit, grad and vmap."""

    def f(x):
        total = new_ref(jnp.zeros(()))

        def step(carry, a):
            lax.cond(a > 0, lambda: total.addupdate(a * carry), lambda: None)
            return carry * a, None

        jit(lambda x: lax.scan(step, 1.0, x))(x)
        return total[...]

    def plain(x):
        total, carry = 0.0, 1.0
        for i in range(3):
            total = total + jnp.where(x[i] > 0, x[i] * carry, 0.0)
            carry = carry * x[i]
        return total

    xs = jnp.array([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0]])
    for wrap in (
        vmap,
        lambda f: jit(vmap(f)),
        lambda f: vmap(grad(f)),
        lambda f: jit(vmap(grad(f))),
    ):
        np.testing.assert_allclose(wrap(f)(xs), wrap(plain)(xs), rtol=1e-6)


def test_names_in_errors() -> None:
    ref = new_ref(1.0)

    def step(params, state):
        return params["w"][...] + state[...]

    with pytest.raises(ValueError, match=r"`params\['w'\]` and `state`"):
        jit(step)({"w": ref}, ref)
