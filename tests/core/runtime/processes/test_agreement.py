"""Processes that are about to run different programs are told so, all of them, before they wait."""

from __future__ import annotations

from support import several

from perspex.runtime.processes.agreement import first_difference

# What decides which program runs depends on the process, in all these ways.
VARIANTS = """
def first(a): return a.sum()
def second(a): return a.max()
def scanned(a): return lax.scan(lambda c, r: (c + r.sum() * (1 + me), None), 0.0, a)[0]
def looped(a): return lax.fori_loop(0, 2 + me, lambda i, s: s * 2, a.sum())
def noisy(a): return a + perspex.random.normal(perspex.random.key(me), a.shape)
def cubes(a): return (a ** 3).sum()
def everywhere(f, out=P()): return perspex.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out)
whole = NamedSharding(mesh, P())
jit = perspex.jit
PROGRAMS = {
    "constant": lambda: jit(lambda a: (a * (2 + me)).sum())(x),
    "array constant": lambda: jit(lambda a: (a + np.arange(2) * me).sum())(x),
    "function": lambda: jit([first, second][me])(x),
    "shape": lambda: jit(lambda a: a[: 4 + me].sum())(x),
    "dtype": lambda: jit(lambda a: a.astype([jnp.int32, jnp.float16][me]).sum())(x),
    "axis": lambda: jit(lambda a: a.sum(axis=me))(x),
    "branch": lambda: jit(lambda a: a.sum() if me else a.sum() + 1)(x),
    "loop": lambda: jit(looped)(x),
    "sharding": lambda: jit(lambda a: a + 1, out_shardings=[rows, whole][me])(x),
    "sharding of an argument": lambda: jit(jnp.tanh)(perspex.device_put(x, [rows, whole][me])),
    "static argument": lambda: jit(lambda a, n: a.sum() ** n, static_argnums=1)(x, 3 + me),
    "number of programs": lambda: jit(lambda a: a @ a.T)(x if me else x * 1.5),
    "derivative": lambda: jit([perspex.grad(cubes), cubes][me])(x),
    "vmap": lambda: jit(perspex.vmap(lambda r: r.sum() * (1 + me)))(x),
    "scan": lambda: jit(scanned)(x),
    "collective": lambda: everywhere(lambda a: [lax.psum, lax.pmax][me](a, "x"))(x),
    "permutation": lambda: everywhere(lambda a: lax.ppermute(a, "x", [(me, 1 - me)]), P("x"))(x),
    "eager": lambda: [jnp.sin, jnp.cos][me](x),
    "random": lambda: jit(noisy)(x),
    "value": lambda: perspex.device_put(np.arange(4.0) + me, rows),
}
for name, program in PROGRAMS.items():
    error = raised(program)
    text = str(error)
    say(name, "|", type(error).__name__, "|", f"process {1 - me} (" in text and "<string>:" in text)
    if name == "constant": shown = text
# Nothing was started, so all of them go on.
say(perspex.jit(lambda a: a.sum())(x))
say(shown)
"""


def test_programs_that_differ_are_named_before_anything_hangs() -> None:
    outs = several.agree(VARIANTS)
    for me, out in enumerate(outs):
        lines = out.splitlines()
        found = [line.split(" | ") for line in lines if " | " in line]
        assert len(found) == 20
        for name, kind, is_named in found:
            assert (kind, is_named) == ("ProgramMismatchError", "True"), name
        assert "120.0" in lines
        shown = out[out.index("120.0") :]
        assert f"process {me}: %cst = stablehlo.constant dense<{2 + me}.0" in shown
        assert f"process {1 - me}: %cst = stablehlo.constant dense<{3 - me}.0" in shown


ORDER = """
config.update("check_processes_timeout", 1.0)
f, g = perspex.jit(lambda a: a.sum()), perspex.jit(lambda a: a.max())
f(x)
# One runs what all have run before, which is not compared; the other waits with a new program.
error = raised(lambda: [f, g][me](x))
say(type(error).__name__, "waits for `<lambda>`" in str(error), str(error).count("(host "))
say(raised(lambda: f(x)))
"""


def test_another_order_of_known_programs_is_an_error_on_all_after_a_while() -> None:
    for ended in several.run(ORDER):
        first, *rest = ended.out.splitlines()
        assert first == "ProgramMismatchError True 2"
        assert "in different places" in rest[0]


SWITCHED_OFF = """
config.update("check_processes", False)
before = len(distributed.joining.agreement.orders)
say(perspex.jit(lambda a: a.sum())(x), len(distributed.joining.agreement.orders) - before)
config.update("check_processes", True)
f = perspex.jit(lambda a: a.min())
f(x)
orders = dict(distributed.joining.agreement.orders)
for _ in range(3): f(x)
perspex.jit(lambda a: a.min())(x)
say(orders == dict(distributed.joining.agreement.orders))
"""


def test_nothing_is_compared_when_it_is_off_or_known() -> None:
    for out in several.agree(SWITCHED_OFF):
        assert out.split() == ["120.0", "0", "True"]


def test_first_difference() -> None:
    assert first_difference("a\nb\nc", "a\n  x\nc") == ("b", "x")
    assert first_difference("a\nb", "a") == ("b", "(it ends)")
    assert first_difference("a", "a") is None
