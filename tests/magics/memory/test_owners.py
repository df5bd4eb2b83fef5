"""Who holds which buffer: names found by hand, bytes counted by NumPy, and `%buffers`."""

from __future__ import annotations

import functools
import re
import sys
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from support.shells import Notebook
from support.steps import calls

import perspex
import perspex.numpy as jnp
from perspex_magics.memory import owners
from perspex_magics.memory.reach import Buffer, Walk


def of(array: Any, report: Any) -> Buffer:
    """The buffer of `array`, found by identity or by address."""
    where = array.unsafe_buffer_pointer()
    found = [b for b in report.buffers if b.array.unsafe_buffer_pointer() == where]
    assert len(found) == 1
    return found[0]


def names(array: Any, notebook: Notebook) -> list[str]:
    buffer = of(array, owners.report(notebook.shell))
    return [owner.text(path) for owner, path in buffer.ways]


# How a cell keeps the array `x`, and what the way to it is written as.
KEPT = {
    "variable": ("y = x", "y"),
    "dict": ("params = {'w': [0.5, x]}", "params['w'][1]"),
    "tuple key": ("grid = {(0, 'a'): x}", "grid[(0, 'a')]"),
    "object": ("class Box: pass\nbox = Box()\nbox.item = {'k': x}", "box.item['k']"),
    "ref": ("box = perspex.new_ref(0.0); box._value = x", "box._value"),
    "slots": ("class Box:\n    __slots__ = ('a',)\nbox = Box()\nbox.a = x", "box.a"),
    "class": ("class Box:\n    item = x", "Box.item"),
    "closure": (
        "def outer(x):\n    return lambda: x\nf = outer(x)",
        "f (the variable x)",
    ),
    "default": ("def f(a=x): return a", "f (a default)"),
    "partial": ("import functools\nf = functools.partial(print, x)", "f.args[0]"),
    "method": (
        "class Box:\n    def run(self): pass\nb = Box(); b.x = x\nrun = b.run\ndel b",
        "run.__self__.x",
    ),
    "jitted closure": (
        "def outer(x):\n    return perspex.jit(lambda: x)\nf = outer(x)",
        "f (the variable x)",
    ),
    "deque": ("import collections\nq = collections.deque([0, x])", "q[1]"),
    "attribute of a list": (
        "class Kept(list):\n    __slots__ = ('a', '__dict__')\nk = Kept(); k.a = [x]",
        "k.a[0]",
    ),
    "attribute of a dict": ("class Kept(dict): pass\nk = Kept(); k.extra = x", "k.extra"),
    "attribute of a function": ("def f(): pass\nf.kept = x", "f.kept"),
    "mapping proxy": ("import types\nm = types.MappingProxyType({'a': x})", "m['a']"),
    "objects of NumPy": ("o = np.array([None, 0]); o[0] = x", "o[0]"),
    "a matrix of objects": ("o = np.full((2, 2), None); o[1, 0] = x", "o.flat[2]"),
    "records of NumPy": ("o = np.zeros(2, [('a', object)]); o['a'][1] = x", "o[1]"),
    "memory shown by NumPy": ("h = np.asarray(x)[5:]", "h.base.base.obj"),
    "iterator": ("it = iter([x])", "it (inside)[0]"),
    "map": ("it = map(abs, (x,))", "it (inside)[0] (inside)[0]"),
    "cache": ("import functools\nc = functools.lru_cache(lambda y: x)\nc(1);", "c (inside)"),
    "context variable": (
        "import contextvars\nv = contextvars.ContextVar('v'); v.set(x);",
        "v.get()",
    ),
    "generator": (
        "def g(y):\n    yield 1\n    print(y)\nit = g(x); next(it)",
        "it (the variable y)",
    ),
    "coroutine": (
        "class Wait:\n    def __await__(self): yield\n"
        "async def g(y):\n    await Wait()\n    print(y)\n"
        "async def h(): await g(later.pop())\nlater = [x]; c = h(); c.send(None)",
        "c (inside) (the variable y)",
    ),
    "kept error": (
        "def g(y): raise ValueError\ntry:\n    g(x)\nexcept ValueError as e: kept = e",
        "kept (the variable y in g())",
    ),
    "kept traceback": (
        "def g(y): raise ValueError\ntry:\n    g(x)\n"
        "except ValueError as e: kept = e.__traceback__",
        "kept (the variable y in g())",
    ),
    "object of a kept error": (
        "try:\n    x.nothing_like_it\nexcept AttributeError as e: kept = e",
        "kept.obj",
    ),
    "dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass State:\n    w: object\ns = State(x)",
        "s.w",
    ),
}


@pytest.mark.parametrize(("cell", "path"), KEPT.values(), ids=KEPT)
def test_paths(notebook: Notebook, cell: str, path: str) -> None:
    x = jnp.arange(1000.0)
    notebook.ns["x"] = x
    notebook.ok(cell)
    assert set(names(x, notebook)) == {"x", path}
    notebook.ok("del x")
    assert names(x, notebook) == [path]
    assert of(x, owners.report(notebook.shell)).nbytes == np.arange(1000, dtype="f4").nbytes


def test_typed_keys_are_arrays(notebook: Notebook) -> None:
    notebook.ok("key = perspex.random.key(0)")
    assert names(notebook.ns["key"].base, notebook) == ["key"]


def test_shared_memory_is_counted_once(notebook: Notebook) -> None:
    a = jnp.arange(500.0)
    b = perspex.device_put(a, perspex.devices()[0])
    assert a is not b and a.unsafe_buffer_pointer() == b.unsafe_buffer_pointer()
    notebook.ns.update(a=a, b=b)
    assert names(a, notebook) == ["a", "b"]
    walk = Walk()
    owners.add_names(walk, notebook.shell)
    assert walk.buffers().nbytes == 2000


def test_outputs(notebook: Notebook) -> None:
    notebook.ok("jnp.arange(7.0) + 1")
    number = notebook.shell.execution_count - 1
    assert names(notebook.ns["_"], notebook) == [f"Out[{number}]"]


@pytest.mark.parametrize("cell", ["Out.clear()", "Out.clear(); del {}"])
def test_outputs_that_are_out_of_the_list(notebook: Notebook, cell: str) -> None:
    notebook.ok("jnp.arange(7.0) + 1")
    name = f"_{notebook.shell.execution_count - 1}"
    x = weakref.ref(notebook.ns[name])
    notebook.ok(f"{cell.format(name)}; _ = __ = 0")
    assert name in names(x(), notebook)


def test_deleted_arrays_and_arrays_without_a_name(notebook: Notebook) -> None:
    unnamed = jnp.arange(300.0)
    gone = jnp.arange(400.0)
    notebook.ns["gone"] = gone
    gone.delete()
    report = owners.report(notebook.shell)
    assert of(unnamed, report).ways == []
    assert all(b.array is not gone for b in report.buffers)


def test_frames_of_the_last_error(notebook: Notebook) -> None:
    notebook.fails(
        "def inner(h):\n    z = {'a': h}\n    raise ValueError\n"
        "def outer():\n    big = jnp.arange(250.0)\n    inner(big)\nouter()",
        ValueError,
    )
    frame = next(f for f in owners.frames(last_error()) if f.f_code.co_name == "outer")
    big = frame.f_locals["big"]
    assert names(big, notebook) == [
        "big in outer() (the last error)",
        "h in inner() (the last error)",
        "z['a'] in inner() (the last error)",
    ]


def last_error() -> BaseException:
    import sys

    return sys.last_value


def test_what_an_error_itself_carries(notebook: Notebook) -> None:
    notebook.fails("raise ValueError('bad', jnp.arange(260.0))", ValueError)
    array = last_error().args[1]
    assert names(array, notebook) == ["a value[0][1] in ValueError (the last error)"]


def test_constants_of_compiled_functions(notebook: Notebook) -> None:
    w = jnp.arange(700.0)
    notebook.ns["w"] = w
    notebook.ok("@perspex.jit\ndef scaled(x): return x * w\ny = scaled(2.0)\ndel w")
    assert set(names(w, notebook)) == {"compiled scaled (a constant)"}
    notebook.ok("del scaled")


def test_what_programs_of_cells_remember(notebook: Notebook) -> None:
    w = jnp.arange(710.0)
    notebook.ns["w"] = w
    notebook.ok("class Model: pass\nmodel = Model()\nmodel.w = w\ndel w")
    notebook.ok("%%jit\ny = model.w.sum()")
    notebook.ok("del model")
    found = names(w, notebook)
    assert any(name.startswith("a cell's program") for name in found), found
    assert all("model" not in name for name in found)


def test_modules_of_the_user(notebook: Notebook, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "own_module_here.py").write_text(
        "import perspex.numpy as jnp\ntable = {'t': jnp.arange(90.0)}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    notebook.ok("import own_module_here as own")
    assert names(notebook.ns["own"].table["t"], notebook) == ["own.table['t']"]


def test_nothing_waits_for_the_device(notebook: Notebook) -> None:
    notebook.ok(
        "@perspex.jit\ndef slow(a):\n"
        "    return perspex.lax.fori_loop(0, 16, lambda i, a: a @ a / 900, a)\n"
        "a = jnp.ones((900, 900))\nslow(a).block_until_ready();"
    )
    notebook.ok("b = slow(a); b = slow(b)")
    report = owners.report(notebook.shell)
    assert not notebook.ns["b"].is_ready(), "the machine was too fast for this test"
    held = [b for b in report.buffers if b.array is notebook.ns["b"]]
    assert [owner.name for owner in held[0].owners] == ["b"]


def test_hostile_objects_and_cycles(notebook: Notebook) -> None:
    notebook.ok(
        "class Trap:\n"
        "    @property\n    def __dict__(self): raise RuntimeError('do not look')\n"
        "class Proxy:\n"
        "    @property\n    def __class__(self): raise RuntimeError('not bound')\n"
        "class Lazy(dict):\n    def items(self): raise RuntimeError('no')\n"
        "class Endless(list):\n    def __iter__(self):\n        while True: yield []\n"
        "trap = Trap(); proxy = Proxy(); several = [Proxy(), Lazy(), Endless(), Trap()]\n"
        "loop = []\nloop.append(loop)\nloop.append({'l': loop, 'x': jnp.ones(33)})"
    )
    assert names(notebook.ns["loop"][1]["x"], notebook) == ["loop[1]['x']"]
    assert "Error" not in notebook.out
    notebook.fails(
        "def f():\n    p = [proxy, jnp.ones(1 << 18)]\n    1 / 0\nf()", ZeroDivisionError
    )
    assert "`p` in f(), 1.00 MiB" in notebook.displayed[-1]["text/plain"]
    notebook.ok("pass")
    assert "Error" not in notebook.out


def test_the_walk_is_bounded(notebook: Notebook) -> None:
    deep: list[Any] = [jnp.ones(34)]
    for _ in range(1000):
        deep = [deep]
    for many in ([[] for _ in range(10**5)], [[i] for i in range(90_000)], deep):
        walk = Walk()
        owner = owners.Owner("variable", "many")
        # 23 for each of the 50,000 that are entered, where this was written.
        assert calls(functools.partial(walk.add, many, owner)) < 30 * 50_000
        assert not walk.buffers().complete and not walk.found


def test_an_error_is_looked_through_as_fast_after_a_long_day(notebook: Notebook) -> None:
    notebook.ok(
        "from dataclasses import dataclass\nfrom perspex import jit, tree\n"
        "@jit\ndef pick(x):\n    return x if x > 0 else -x"
    )

    def entered() -> int:
        assert notebook.run("pick(1.0)").error_in_exec is not None
        walk = Walk()
        before = walk.left
        owners.add_error(walk, sys.last_value)
        return before - walk.left

    first = entered()
    notebook.ok(
        "for i in range(100):\n"
        "    kind = dataclass(type(f'Part{i}', (), {'__annotations__': {'x': float}}))\n"
        "    tree.register_dataclass(kind, ('x',), ())\n"
        "    step = jit(lambda x: x + i)\n"
        "    step(1.0), step(jnp.ones(2))"
    )
    assert entered() <= first


def test_long_lists_of_numbers_do_not_hide_what_comes_after(notebook: Notebook) -> None:
    notebook.ok("losses = [list(map(float, range(10**6))) for _ in range(3)]; z = [jnp.ones(35)]")
    assert names(notebook.ns["z"][0], notebook) == ["z[0]"]


def test_one_array_many_times(notebook: Notebook) -> None:
    notebook.ok("x = jnp.ones(36); xs = [x] * 100_000")
    # 7 for each, where this was written.
    assert calls(lambda: owners.report(notebook.shell)) < 10 * 100_000
    assert names(notebook.ns["x"], notebook) == ["x", "xs[0]"]


def test_ten_thousand_arrays(notebook: Notebook) -> None:
    notebook.ok("one = jnp.ones(3)\nxs = [one + i for i in range(10_000)]")
    # 27 for each, where this was written.
    assert calls(lambda: owners.report(notebook.shell)) < 40 * 10_000
    report = owners.report(notebook.shell)
    held = [b for b in report.buffers if any(o.name == "xs" for o in b.owners)]
    assert len(held) == 10_000 and report.complete


def test_numpy_arrays_if_asked(notebook: Notebook) -> None:
    notebook.ok("table = np.zeros((100, 10)); row = table[3]")
    kinds = {type(b.array) for b in owners.report(notebook.shell).buffers}
    assert np.ndarray not in kinds
    found = owners.report(notebook.shell, numpy=True).buffers
    sizes = {b.owners[0].name: b.nbytes for b in found if isinstance(b.array, np.ndarray)}
    assert sizes["table"] == 8000 and "row" not in sizes


# ---- %buffers -----------------------------------------------------------------------------------


def listed(notebook: Notebook, line: str = "%buffers") -> str:
    notebook.ok(line)
    return notebook.displayed[-1]["text/plain"]


def row(text: str, owner: str) -> list[str]:
    """The columns of a row of the table, set apart by two spaces or more."""
    line = next(line for line in text.splitlines() if line.startswith(f"{owner}  "))
    return re.split(r"  +", line)


def test_the_table(notebook: Notebook) -> None:
    notebook.ok("w = jnp.zeros((300, 100))")
    number = notebook.shell.execution_count - 1
    notebook.ok("params = {'w': w, 'b': jnp.zeros(512), 'c': jnp.zeros(512)}")
    text = listed(notebook)
    # 300 * 100 * 4 = 120,000 bytes = 117 KiB; 2 * 512 * 4 = 4 KiB
    where = str(jnp.zeros(1).device)
    assert row(text, "w") == ["w", "f32[300,100]", "117 KiB", where, f"In[{number}]", "params"]
    assert row(text, "params") == ["params", "2 arrays", "4.00 KiB", where]
    every = listed(notebook, "%buffers --all")
    assert row(every, "params['b']")[:3] == ["params['b']", "f32[512]", "2.00 KiB"]


def test_the_cell_of_a_rebound_name(notebook: Notebook) -> None:
    notebook.ok("w = jnp.zeros(5000)")
    notebook.ok("w = jnp.zeros(5000)")
    number = notebook.shell.execution_count - 1
    notebook.ok("pass")
    assert f"In[{number}]" in row(listed(notebook), "w")
    notebook.ns["w"] = jnp.zeros(5000)  # no cell did that
    assert "In[" not in " ".join(row(listed(notebook), "w"))


def test_data_for_the_panel(notebook: Notebook) -> None:
    notebook.ok("w = jnp.zeros((300, 100))")
    notebook.ok("%buffers")
    data = notebook.displayed[-1]["application/vnd.perspex.buffers+json"]
    assert {r["owner"]: r["nbytes"] for r in data["rows"]}["w"] == 120_000
    assert data["bytes"] >= 120_000 and data["complete"]


def test_top(notebook: Notebook) -> None:
    notebook.ok(
        "\n".join(f"v{i} = perspex.device_put(np.zeros({300_000 * (i + 5)}))" for i in range(8))
    )
    text = listed(notebook, "%buffers --top 3")
    assert [row(text, name)[0] for name in ("v7", "v6", "v5")] and "v4" not in text
    assert "more rows" in text
    assert len([r for r in listed(notebook).splitlines() if r.startswith("v")]) == 8


def test_html_is_escaped_and_has_no_scripts(notebook: Notebook) -> None:
    notebook.ok("p = {'<script>alert(1)</script>': jnp.zeros(9000)}")
    notebook.ok("%buffers")
    html = notebook.displayed[-1]["text/html"]
    assert "<script" not in html and "&lt;script&gt;" in html
    assert 'scope="col"' in html and 'scope="row"' in html


def test_help_and_usage_errors(notebook: Notebook) -> None:
    notebook.ok("%buffers --help")
    assert "--top" in notebook.out and "%buffers free" in notebook.out
    for line, match in [
        ("%buffers --top x", "--top"),
        ("%buffers --top 0", "above 0"),
        ("%buffers --nothing", "--nothing"),
        ("%buffers release w", "release"),
        ("%buffers free", "names"),
        ("%buffers free w --all", "no options"),
        ("%buffers free nothing_here", "nothing_here"),
    ]:
        notebook.fails(line, UsageError, match)


def complete(notebook: Notebook, text: str) -> set[str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        found = notebook.shell.Completer.completions(text, len(text))
        return {match.text for match in found}


def test_completion(notebook: Notebook) -> None:
    notebook.ok("weights = jnp.zeros(3); words = 'abc'; nested = {'w': [weights]}")
    options = {"--top", "--all", "--numpy", "--help"}
    # Nothing of what may stand in other lines: keywords, files, other variables.
    assert complete(notebook, "%buffers ") == {"free", *options}
    assert complete(notebook, "%buffers --") == options
    assert complete(notebook, "%buffers fr") == {"free"}
    assert complete(notebook, "%buffers free w") == {"weights"}
    assert complete(notebook, "%buffers free ") == {"weights", "nested"}


# ---- %buffers free ------------------------------------------------------------------------------


def test_free(notebook: Notebook) -> None:
    notebook.ok("w = jnp.zeros((256, 256)); p = {'a': jnp.ones(1024), 'n': 3}")
    w, a = weakref.ref(notebook.ns["w"]), weakref.ref(notebook.ns["p"]["a"])
    notebook.ok("%buffers free w p")
    # 256 * 256 * 4 + 1024 * 4 = 266,240 bytes = 260 KiB
    assert notebook.out == "Removed w, p: 260 KiB freed.\n"
    assert w() is None and a() is None
    notebook.fails("w", NameError)
    notebook.fails("p", NameError)


def test_free_is_all_or_nothing(notebook: Notebook) -> None:
    notebook.ok("w = jnp.zeros(3); n = 3")
    for line, match in [("w missing", "missing"), ("w n", "`n` holds no arrays")]:
        notebook.fails(f"%buffers free {line}", UsageError, match)
        assert notebook.ok("float(w.sum()), n") == (0.0, 3)


def test_free_keeps_what_others_hold(notebook: Notebook) -> None:
    notebook.ok("w = jnp.arange(4.0); p = [w, jnp.ones(2)]; alias = w")
    own = weakref.ref(notebook.ns["p"][1])
    notebook.ok("%buffers free p")
    assert own() is None
    assert "8 B freed" in notebook.out and "Kept f32[4], 16 B" in notebook.out
    assert "held by w, alias." in notebook.out
    assert notebook.ok("w.sum()") == 6.0
    notebook.fails("p", NameError)


@pytest.mark.parametrize(("cell", "path"), KEPT.values(), ids=KEPT)
def test_free_keeps_what_anything_holds(notebook: Notebook, cell: str, path: str) -> None:
    """The memory is freed once the other holder is gone, too, and not before."""
    notebook.ns["x"] = jnp.arange(1000.0)
    notebook.ok(cell)
    x = weakref.ref(notebook.ns["x"])
    notebook.ok("%buffers free x")
    if path == "x":
        return
    name = re.match(r"\w+", path)[0]
    assert notebook.out.startswith("Removed x: 0 B freed.\nKept f32[1000], 3.91 KiB: also held by ")
    assert name in notebook.out and float(x().sum()) == sum(range(1000))
    notebook.ok(f"%buffers free {name}")
    if "contextvars" not in cell:  # its context holds the value
        assert "3.91 KiB freed" in notebook.out and x() is None


def test_free_keeps_what_has_no_name(notebook: Notebook) -> None:
    notebook.ok("w = jnp.arange(4.0); other = perspex.device_put(w, perspex.devices()[0])")
    hidden = [notebook.ns.pop("other")]
    notebook.ok("%buffers free w")
    assert notebook.out.splitlines() == [
        "Removed w: 0 B freed.",
        "Kept f32[4], 16 B: still referenced, but by nothing with a name.",
    ]
    assert float(hidden[0].sum()) == 6.0


def test_free_in_a_function_that_uses_it(notebook: Notebook) -> None:
    total = notebook.ok(
        "w = jnp.arange(4.0)\n"
        "def f(mine):\n    get_ipython().run_line_magic('buffers', 'free w')\n"
        "    return float(mine.sum())\nf(w)"
    )
    assert total == 6.0
    assert "still referenced, but by nothing with a name" in notebook.out


def test_free_of_cycles(notebook: Notebook) -> None:
    notebook.ok("loop = [jnp.arange(4.0)]; loop.append(loop)")
    notebook.ok("%buffers free loop")
    assert notebook.out == "Removed loop: 16 B freed.\n"


@pytest.mark.parametrize("is_kept", [False, True])
def test_free_of_what_the_last_error_holds(notebook: Notebook, is_kept: bool) -> None:
    notebook.ok("w = jnp.arange(4.0)")
    notebook.fails("def f(mine):\n    raise ValueError\nf(w)", ValueError)
    # In the cell itself, before the next one lets go of the error.
    if is_kept:
        notebook.shell.user_ns["error"] = last_error()
    notebook.ok("%buffers free w")
    if is_kept:
        assert "also held by error." in notebook.out
    else:
        assert "16 B freed" in notebook.out and "Dropped the last error" in notebook.out


def test_free_keeps_constants_of_compiled_functions(notebook: Notebook) -> None:
    notebook.ok("c = jnp.arange(100.0)\n@perspex.jit\ndef f(x): return (x * c).sum()\nf(1.0);")
    notebook.ok("%buffers free c")
    assert "compiled f" in notebook.out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `f` captured a variable that is no more
        assert notebook.ok("float(f(2.0))") == 2 * sum(range(100))


def test_free_takes_outputs_along(notebook: Notebook) -> None:
    notebook.ok("w = jnp.arange(8.0)")
    notebook.ok("w")
    number = notebook.shell.execution_count - 1
    w = weakref.ref(notebook.ns["w"])
    notebook.ok("%buffers free w")
    assert w() is None and f"Out[{number}]" in notebook.out and "32 B freed" in notebook.out
    assert number not in notebook.ns["Out"] and f"_{number}" not in notebook.ns
    assert notebook.ns["_"] == ""
    notebook.ok("1 + 1")
    assert notebook.ns["_"] == 2


def test_free_keeps_outputs_that_hold_more(notebook: Notebook) -> None:
    notebook.ok("w = jnp.arange(8.0); v = jnp.arange(5.0)")
    notebook.ok("w, v")
    number = notebook.shell.execution_count - 1
    notebook.ok("%buffers free w")
    assert f"also held by Out[{number}]" in notebook.out
    assert notebook.ok(f"float(Out[{number}][0].sum())") == 28.0
