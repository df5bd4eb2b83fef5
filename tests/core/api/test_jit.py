"""`jit`: what it computes, what it caches, and what it says when it is misused."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import perspex
import perspex.numpy as pnp
from perspex import config, errors
from perspex.api.jit import by_value

X = np.arange(8, dtype=np.float32)


def traced_times(f, calls):
    """How often `f` is traced by `calls(jitted)`."""
    times = 0

    def counted(*args, **kwargs):
        nonlocal times
        times += 1
        return f(*args, **kwargs)

    counted.__name__ = f.__name__
    calls(counted)
    return times


def test_results_have_the_tree_of_the_function() -> None:
    @perspex.jit
    def f(x, pair):
        return {"a": (x + pair[0], None), "b": [pair[1]["c"] * 2, 3]}

    out = f(X, (1.0, {"c": X}))
    np.testing.assert_array_equal(out["a"][0], X + 1)
    assert out["a"][1] is None
    np.testing.assert_array_equal(out["b"][0], X * 2)
    assert int(out["b"][1]) == 3


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j, np.float32(2), np.int8(3), X, X[:0]])
def test_arguments_of_every_kind(value) -> None:
    out = perspex.jit(lambda v: v)(value)
    np.testing.assert_array_equal(out, value)
    again = perspex.jit(lambda v: pnp.asarray(v) + 0)(value)
    assert again.shape == np.shape(value)


def test_traced_once_per_type() -> None:
    def f(x, y):
        return x * y

    def calls(g):
        h = perspex.jit(g)
        for _ in range(3):
            h(X, X)
        h(X, 2.0)
        h(X, 3.0)  # another number of the same type
        h(X[:4], 2.0)
        perspex.jit(g)(X, X)  # the same function wrapped again

    assert traced_times(f, calls) == 3


def test_static_arguments_by_number_and_name() -> None:
    def power(x, n, flip=False):
        return (-x if flip else x) ** n

    def calls(g):
        h = perspex.jit(g, static_argnums=1, static_argnames="flip")
        np.testing.assert_allclose(h(X, 2), X**2)
        np.testing.assert_allclose(h(X, 2, flip=False), X**2)
        np.testing.assert_allclose(h(X, 3, flip=True), (-X) ** 3)
        np.testing.assert_allclose(h(X, 3, flip=True), (-X) ** 3)

    assert traced_times(power, calls) == 3


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "p"}])
def test_static_values_of_another_type_are_others(options: dict[str, object]) -> None:
    f = perspex.jit(lambda x, p: x * p, **options)
    x = np.arange(3, dtype=np.int32)
    kinds = [(2, "i"), (2.0, "f"), (1, "i"), (True, "i"), (1.0, "f"), (2, "i"), (np.int8(2), "i")]
    for p, kind in kinds:
        found = f(x, p) if "static_argnums" in options else f(x, p=p)
        assert found.dtype.kind == kind and list(found) == list(x * p)


def test_static_name_covers_the_position() -> None:
    def cond_func(x):
        return x**2.0 if x < 0.0 else x**3.0

    f = perspex.jit(cond_func, static_argnames="x")
    assert float(f(2.0)) == 8.0 and float(f(-2.0)) == 4.0


def test_decorator_with_options() -> None:
    @perspex.jit(static_argnums=(0,))
    def f(n, x):
        return x[:n]

    assert f(3, X).shape == (3,)
    assert f.__name__ == "f" and f.__wrapped__(2, X).shape == (2,)


def test_methods_and_partials() -> None:
    class Model:
        def __init__(self, w):
            self.w = w

        @perspex.jit(static_argnums=0)
        def apply(self, x):
            return self.w * x

    np.testing.assert_array_equal(Model(3.0).apply(X), 3 * X)
    import functools

    np.testing.assert_array_equal(perspex.jit(functools.partial(pnp.add, 1.0))(X), X + 1)
    np.testing.assert_array_equal(perspex.jit(Model(2.0).apply.__get__(Model(2.0)))(X), 2 * X)


def test_nested_jit_is_a_function_of_the_module() -> None:
    inner = perspex.jit(lambda x: pnp.sin(x) * 2)
    inner.__wrapped__.__name__ = "inner"

    @perspex.jit
    def outer(x):
        return inner(x) + inner(x)

    jaxpr = outer.trace(X).jaxpr
    assert [e.primitive.name for e in jaxpr.eqns] == ["jit", "jit", "add"]
    text = outer.lower(X).as_text()
    assert text.count("stablehlo.sine") == 1 and text.count("call @") == 2
    np.testing.assert_allclose(outer(X), 4 * np.sin(X), rtol=1e-6)


def test_inline_leaves_no_equation() -> None:
    inner = perspex.jit(lambda x: pnp.sin(x), inline=True)
    jaxpr = perspex.make_jaxpr(lambda x: inner(x) + 1)(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "add"]


def test_closed_over_arrays_and_tracers() -> None:
    table = pnp.asarray(np.arange(100, dtype=np.float32))
    host = np.arange(100, dtype=np.float32)

    @perspex.jit
    def f(x):
        g = perspex.jit(lambda y: y * x + table)  # closes over a tracer and an array
        return g(x + host)

    v = np.ones(100, np.float32)
    np.testing.assert_allclose(f(v), (v + host) * v + np.arange(100))


def test_globals_are_captured_at_trace_time() -> None:
    box = {"a": pnp.ones(3)}
    f = perspex.jit(lambda x: x + box["a"])
    np.testing.assert_array_equal(f(pnp.ones(3)), [2, 2, 2])
    box["a"] = pnp.zeros(3)
    np.testing.assert_array_equal(f(pnp.ones(3)), [2, 2, 2])


def test_numpy_constants_are_copied() -> None:
    host = np.ones(200, np.float32)
    f = perspex.jit(lambda x: x + host)
    host_after = f(np.zeros(200, np.float32))
    host[:] = 7
    np.testing.assert_array_equal(f(np.zeros(200, np.float32)), host_after)


def test_side_effects_only_while_tracing(capsys) -> None:
    @perspex.jit
    def f(a, b):
        print("Calculating sum")
        return a + b

    f(X, X)
    f(X, X)
    assert capsys.readouterr().out == "Calculating sum\n"


def test_unused_arguments() -> None:
    f = perspex.jit(lambda x, y: x + 1)
    np.testing.assert_array_equal(f(X, X), X + 1)
    assert f.lower(X, X).as_text().count("%arg1") == 0
    kept = perspex.jit(lambda x, y: x + 1, keep_unused=True)
    assert "%arg1" in kept.lower(X, X).as_text()
    np.testing.assert_array_equal(kept(X, X), X + 1)


def test_donation_reuses_memory_and_deletes() -> None:
    f = perspex.jit(lambda x, y: x + y, donate_argnums=0)
    for _ in range(2):  # the first call, and the fast path
        x = pnp.asarray(np.arange(1000.0, dtype=np.float32)) + 0.0
        where = x.unsafe_buffer_pointer()
        out = f(x, pnp.ones(1000))
        assert out.unsafe_buffer_pointer() == where
        assert x.is_deleted()
        for use in (lambda x=x: x + 1, lambda x=x: np.asarray(x), lambda x=x: f(x, x)):
            with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32"):
                use()
        assert "deleted" in repr(x)


# Which arguments real jax 0.12 deletes, and which types it names in its warning.
@pytest.mark.parametrize(
    ("f", "dtypes", "deleted", "named"),
    [
        (lambda x: x.sum(), ["float32"], [False], "float32[4]"),
        (lambda x, y: x + y, ["float32", "float32"], [True, False], "float32[4]"),
        (lambda x, y: x.sum() + y, ["int32", "float32"], [False, True], "int32[4]"),
        (lambda x: x[:2] * 2, ["float32"], [False], "float32[4]"),
        (lambda x: x.astype("int32"), ["float32"], [True], ""),
        (lambda x: x.reshape(2, 2) * 2, ["float32"], [True], ""),
        (lambda x, y: (x + y, x - y), ["float32", "float32"], [True, True], ""),
        (lambda x, y: y + 1, ["float32", "float32"], [False, True], ""),
    ],
)
def test_donated_arguments_that_no_result_can_replace_stay(
    f: Any, dtypes: list[str], deleted: list[bool], named: str
) -> None:
    args = [pnp.ones(4, dtype) for dtype in dtypes]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        perspex.jit(f, donate_argnums=tuple(range(len(args))))(*args)
    assert [x.is_deleted() for x in args] == deleted
    texts = [str(one.message) for one in told if "donated" in str(one.message)]
    assert [text.splitlines()[0] for text in texts] == (
        [f"Some donated buffers were not usable: {named}."] if named else []
    )
    assert all(one.filename == __file__ for one in told)


def test_donation_by_name() -> None:
    f = perspex.jit(lambda x, y: x + y[:1], donate_argnames="x")
    x = pnp.ones(5) + 0.0
    f(x=x, y=pnp.ones(3))
    assert x.is_deleted()


def test_weak_types_pass_through() -> None:
    assert perspex.jit(lambda x: x * 2)(3.0).weak_type
    assert not perspex.jit(lambda x: x * 2)(np.float32(3)).weak_type


def test_ahead_of_time() -> None:
    f = perspex.jit(lambda x, n: {"y": x[:n] * 2}, static_argnums=1)
    traced = f.trace(perspex.ShapeDtypeStruct((8,), np.float32), 4)
    assert traced.out_info == {"y": perspex.ShapeDtypeStruct((4,), np.float32)}
    lowered = traced.lower()
    assert "func.func public @main" in lowered.as_text()
    assert "loc(" in lowered.as_text(debug_info=True)
    assert lowered.as_text("hlo").startswith("HloModule")
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(X)["y"], X[:4] * 2)
    assert compiled.memory_analysis().output_size_in_bytes == 16
    assert compiled.cost_analysis()["flops"] >= 4
    assert "HloModule" in compiled.as_text()
    with pytest.raises(TypeError, match=r"compiled for `x`: f32\[8\], got f32\[4\]"):
        compiled(X[:4])
    with pytest.raises(TypeError, match="leave static arguments out"):
        compiled(X, 4)


def test_eval_shape_computes_nothing() -> None:
    huge = perspex.ShapeDtypeStruct((1_000_000, 1_000_000), np.float32)
    assert perspex.eval_shape(lambda x: x.T + 1, huge).shape == (1_000_000, 1_000_000)


def test_disable_jit_runs_python_each_time(capsys) -> None:
    @perspex.jit
    def f(x):
        print("called")
        return x + 1 if x[0] == 0 else x

    with perspex.disable_jit():
        np.testing.assert_array_equal(f(X), X + 1)
        f(X)
    assert capsys.readouterr().out == "called\n" * 2


def test_threads() -> None:
    results: list[np.ndarray] = [np.zeros(0)] * 8

    def work(i: int) -> None:
        f = perspex.jit(lambda x: pnp.sin(x) * i)
        results[i] = np.asarray(f(X[: i + 1]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for i, out in enumerate(results):
        np.testing.assert_allclose(out, np.sin(X[: i + 1]) * i, rtol=1e-6)


def test_functions_are_freed() -> None:
    def make():
        return lambda x: x * 2

    refs = []
    for _ in range(3):
        f = make()
        refs.append(weakref.ref(f))
        perspex.jit(f)(X)
        del f
    gc.collect()
    assert [r() for r in refs] == [None] * 3


def test_clear_cache_traces_again() -> None:
    def f(x):
        return x + 1

    def calls(g):
        h = perspex.jit(g)
        h(X)
        h.clear_cache()
        h(X)

    assert traced_times(f, calls) == 2


class TestErrors:
    def test_argument_is_not_an_array(self) -> None:
        with pytest.raises(TypeError, match=r'(?s)`p\[0\]\[.w.\]`.*str.*static_argnames="p"') as e:
            perspex.jit(lambda p: p)([{"w": "text"}])
        assert "jitted function `<lambda>`" in str(e.value)

    def test_result_is_not_an_array(self) -> None:
        with pytest.raises(TypeError, match=r"component \[1\] of the result is of type .*str"):
            perspex.jit(lambda x: (x, "text"))(X)

    def test_unhashable_static(self) -> None:
        with pytest.raises(ValueError, match="unhashable type: 'list'"):
            perspex.jit(lambda x, n: x, static_argnums=1)(X, [1])

    def test_static_number_out_of_range(self) -> None:
        with pytest.raises(ValueError, match="static_argnums has 3"):
            perspex.jit(lambda x: x, static_argnums=3)

    def test_static_name_unknown(self) -> None:
        with pytest.raises(ValueError, match="static_argnames has 'n'"):
            perspex.jit(lambda x: x, static_argnames="n")

    def test_static_and_donated(self) -> None:
        with pytest.raises(ValueError, match="both static and donated"):
            perspex.jit(lambda x: x, static_argnums=0, donate_argnums=0)

    def test_not_a_function(self) -> None:
        with pytest.raises(TypeError, match="jit takes a function"):
            perspex.jit(3)

    def test_generators(self) -> None:
        def f(x):
            yield x

        with pytest.raises(TypeError, match="generator"):
            perspex.jit(f)

    def test_branch_on_a_tracer(self) -> None:
        @perspex.jit
        def loss(x):
            return 1 if x > 0 else 2

        with pytest.raises(errors.TracerBoolConversionError) as e:
            loss(1.0)
        text = str(e.value)
        assert text.startswith("Attempted boolean conversion of traced array with shape bool[].")
        assert "`gt`" in text and "test_jit.py" in text and "lax.cond" in text

    def test_number_from_a_tracer(self) -> None:
        with pytest.raises(errors.ConcretizationTypeError, match="It is `x` of the function"):
            perspex.jit(lambda x: float(x))(1.0)
        with pytest.raises(errors.TracerIntegerConversionError):
            perspex.jit(lambda i: [1, 2, 3][i])(1)
        with pytest.raises(errors.TracerArrayConversionError):
            perspex.jit(lambda x: np.sin(x))(X)

    def test_leaked_tracer(self) -> None:
        kept = []

        @perspex.jit
        def f(x):
            kept.append(x * 2)
            return x

        f(X)
        for use in (lambda: kept[0] + 1, lambda: perspex.jit(lambda y: y + kept[0])(X)):
            with pytest.raises(errors.UnexpectedTracerError, match="`mul` at test_jit.py"):
                use()

    def test_missing_device(self) -> None:
        with pytest.raises(RuntimeError, match="Unknown backend 'gpu'"):
            perspex.jit(lambda x: x, backend="gpu")

    def test_an_error_in_the_function_loses_nothing(self) -> None:
        f = perspex.jit(lambda x, n: x.reshape(n), static_argnums=1)
        with pytest.raises(TypeError, match="cannot reshape"):
            f(X, (3, 3))
        np.testing.assert_array_equal(f(X, (2, 4)), X.reshape(2, 4))
        # and the thread is outside every trace again
        np.testing.assert_array_equal(pnp.asarray(X) + 1, X + 1)


@pytest.mark.parametrize("index", [slice(1, None), slice(None, 2), slice(None, None, -2), 1])
def test_indexing_while_nothing_is_compiled(index: int | slice) -> None:
    x = np.arange(5.0, dtype=np.float32)
    with perspex.disable_jit():
        np.testing.assert_array_equal(pnp.asarray(x)[index], x[index])
        np.testing.assert_array_equal(pnp.asarray(x).at[index].set(7.0)[index], x[index] * 0 + 7)


def test_a_process_forgets_programs_before_it_holds_too_many(monkeypatch) -> None:
    from perspex.runtime.compiler import pressure

    x = pnp.arange(3.0)
    functions = [perspex.jit(lambda x, i=i: pnp.sin(x) * i) for i in range(150)]
    before = pressure.mappings()
    if not before:
        pytest.skip("this system does not list the mappings of a process")
    allowed = before + 100  # reached after some thirty programs; the look is at every 64th
    monkeypatch.setattr(pressure, "_allowed", lambda: allowed / pressure._SHARE)
    monkeypatch.setattr(pressure, "_least", 0)
    held = []
    for f in functions:
        f(x)
        held.append(pressure.mappings())
    assert max(held) < allowed + 64 * 12
    assert np.diff(held).min() < -60  # they fell at once, by more than a few programs
    for i in range(0, 150, 10):
        wanted = np.sin(np.arange(3.0, dtype=np.float32)) * i
        np.testing.assert_allclose(functions[i](x), wanted, rtol=1e-6)


def test_options_of_the_compiler_for_every_program() -> None:
    def f(x):
        return pnp.sin(x) * 2 + 1

    def fusions(jitted) -> int:
        return jitted.lower(X).compile().as_text().count(" fusion(")

    name = "xla_disable_all_hlo_passes"  # those that make one loop of the three operations
    assert fusions(perspex.jit(f)) == 1
    with config.compiler_options({name: True}):
        assert fusions(perspex.jit(f)) != 1
        assert fusions(perspex.jit(f, compiler_options={name: False})) == 1
    jitted, x = perspex.jit(f), pnp.array(X)
    jitted(x), pnp.sin(x)
    with config.compiler_options('{"xla_no_such_option": 1}'):
        for call in (jitted, pnp.sin):
            with pytest.raises(errors.JaxRuntimeError, match="xla_no_such_option"):
                call(x)
    np.testing.assert_allclose(jitted(x), np.sin(X) * 2 + 1, rtol=1e-5)


def test_arguments_called_self() -> None:
    f = perspex.jit(lambda self, x: self * x)
    assert f(self=2.0, x=3.0) == 6.0 and f.lower(self=2.0, x=3.0).compile()(self=2.0, x=4.0) == 8.0
    twice = perspex.custom_jvp(lambda self: self * 2)
    twice.defjvp(lambda primals, tangents: (twice(*primals), 3 * tangents[0]))
    assert twice(self=2.0) == 4.0 and perspex.grad(twice)(2.0) == 3.0


def _power(x: Any, n: int) -> Any:
    return x**n


_powers = perspex.jit(_power, static_argnames="n")


def test_a_jitted_function_pickles_as_its_function_and_options() -> None:
    """Where no module has it under its own name; its programs are made again."""
    again = pickle.loads(pickle.dumps(_powers))
    assert again is not _powers and again(3.0, n=2) == 9.0
    assert again.__name__ == "_power"


def test_a_jitted_function_of_a_module_pickles_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("of_a_module")
    exec("import perspex\n@perspex.jit\ndef twice(x):\n    return 2 * x", vars(module))
    monkeypatch.setitem(sys.modules, "of_a_module", module)
    assert pickle.loads(pickle.dumps(module.twice)) is module.twice


def test_what_jit_has_not_made_does_not_pickle() -> None:
    with pytest.raises(TypeError, match="not made by `jit`"):
        by_value(type("Fast", (), {"__qualname__": "fast"}))
