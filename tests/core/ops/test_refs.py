"""Refs outside of programs: whose memory it is, whose value they may hold, what errors say."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import perspex
from perspex import errors, export, jit, new_ref
from perspex import numpy as jnp
from perspex.ir.references import AbstractRef
from perspex.ref import freeze, swap


def test_a_ref_changes_no_array() -> None:
    x = jnp.arange(3.0)
    ref = new_ref(x)
    ref[0] = 5.0
    y = ref[...]
    ref[...] = y * 2
    ref[1:] += 1.0
    assert x.tolist() == [0, 1, 2] and y.tolist() == [5, 1, 2]
    assert ref[...].tolist() == [10, 3, 5]


def test_a_ref_copies_numpy() -> None:
    given = np.zeros(3, np.float32)
    ref = new_ref(given)
    given[0] = 9
    assert ref[...].tolist() == [0, 0, 0]


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy])
def test_a_copy_is_another_ref(made) -> None:
    ref = new_ref(1.0)
    other = made(ref)
    other[...] = 2.0
    assert float(ref[...]) == 1


def test_the_type_is_interned_and_pickles() -> None:
    aval = new_ref(jnp.zeros(3)).aval
    assert pickle.loads(pickle.dumps(aval)) is aval
    assert aval is AbstractRef(jnp.zeros(3).aval)


def test_keys_in_a_ref() -> None:
    ref = new_ref(perspex.random.key(0))

    @jit
    def draw() -> jnp.ndarray:
        key, mine = perspex.random.split(ref[...])
        ref[...] = key
        return perspex.random.normal(mine)

    assert float(draw()) != float(draw())


def test_errors_say_what_to_do() -> None:
    ref = new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"jnp.broadcast_to\(value, \(3,\)\)"):
        ref[...] = 1.0
    with pytest.raises(ValueError, match=r"value.astype\('float32'\)"):
        ref[0] = 1
    with pytest.raises(TypeError, match=r"ref\[\.\.\.\]"):
        jnp.sin(ref)
    with pytest.raises(TypeError, match=r"ref\[\.\.\.\]"):
        np.asarray(ref)
    with pytest.raises(TypeError, match="not iterable"):
        list(ref)
    with pytest.raises(NotImplementedError, match="leave pin out"):
        new_ref(1.0, pin=True)


def test_a_ref_that_leaks() -> None:
    kept = []
    jit(lambda x: kept.append(new_ref(x)))(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        kept[0][...]
    perspex.grad(lambda x: (kept.append(new_ref(x)), x)[1])(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        kept[1][...]


def test_frozen_in_a_program() -> None:
    def f(x):
        ref = new_ref(x)
        y = freeze(ref)
        ref[...] = y
        return y

    with pytest.raises(ValueError, match="frozen or freed"):
        jit(f)(1.0)


def test_a_value_of_an_inner_transform_is_refused() -> None:
    ref = new_ref(0.0)

    def f(x):
        ref[...] = x
        return x

    for transformed in (perspex.grad(f), perspex.grad(jit(f)), jit(perspex.grad(f))):
        with pytest.raises(ValueError, match="that is not differentiated"):
            transformed(1.0)
    with pytest.raises(ValueError, match="that is not mapped"):
        perspex.vmap(f)(jnp.arange(3.0))
    assert float(ref[...]) == 0


def test_swap_and_views() -> None:
    ref = new_ref(jnp.arange(6.0).reshape(2, 3))
    assert swap(ref.at[1], 0, 9.0) == 3
    ref.at[0].at[1:][...] = jnp.zeros(2)
    assert ref[...].tolist() == [[0, 0, 0], [9, 4, 5]]


def test_a_ref_goes_when_nobody_holds_it() -> None:
    ref = new_ref(jnp.zeros(3))
    gone = weakref.ref(ref)
    del ref
    gc.collect()
    assert gone() is None


def test_what_takes_no_refs_says_so() -> None:
    ref = new_ref(jnp.zeros(3))
    with pytest.raises(NotImplementedError, match="closes over a mutable array reference"):
        perspex.lax.reduce(jnp.ones(3), 0.0, lambda a, b: a + b + ref[0], (0,))
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        perspex.empty_ref(3)


def test_one_way_to_a_ref() -> None:
    ref = new_ref(jnp.zeros(3))
    both = {
        "scan": lambda: perspex.lax.scan(lambda c, a: (c + a[...] + ref[0], None), 0.0, ref),
        "cond": lambda: perspex.lax.cond(
            True, lambda q: q.addupdate(ref[...]), lambda q: None, ref
        ),
        "vmap": lambda: perspex.vmap(lambda q: (q.addupdate(1.0), ref.addupdate(jnp.ones(3)))[0])(
            ref
        ),
        "jit": lambda: jit(lambda q: q[...] + ref[...])(ref),
    }
    for f in both.values():
        with pytest.raises(ValueError, match="passed"):
            f()
        with pytest.raises(ValueError, match="passed"):
            jit(f)()


def test_the_array_that_a_ref_began_with_may_be_given_away() -> None:
    x, y = jnp.ones(3), jnp.ones(3)
    kept, mine = new_ref(x), new_ref(y)
    x.delete()
    jit(lambda y: y + 1, donate_argnums=0)(y)
    for ref in (kept, mine):
        np.testing.assert_array_equal(ref[...], np.ones(3))


def test_a_ref_does_not_come_into_shard_map_nor_into_a_file() -> None:
    mesh = perspex.make_mesh((1,), ("z",))
    ref = new_ref(jnp.ones(2))
    specs = {"mesh": mesh, "in_specs": perspex.P("z"), "out_specs": perspex.P("z")}
    for f in (lambda x: ref[...] * x, lambda x: x):
        mapped = perspex.shard_map(f, **specs)
        for call in (mapped, jit(mapped)):
            with pytest.raises(NotImplementedError, match="shard_map takes no refs"):
                call(jnp.ones(2) if "ref" in f.__code__.co_freevars else ref)
    with pytest.raises(NotImplementedError, match="takes a ref, or closes over one"):
        export.export(jit(lambda x: ref[...] * x))(jnp.ones(2))
    with pytest.raises(NotImplementedError, match="takes a ref, or closes over one"):
        export.export(jit(lambda r: r[...]))(ref)
