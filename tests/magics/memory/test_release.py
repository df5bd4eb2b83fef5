"""What a failed cell holds is said, and gone when the next cell runs; `%debug` comes first."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.shells import Notebook

import perspex
import perspex.numpy as jnp
from perspex.errors import JaxRuntimeError
from perspex.runtime import memory

PINNED = "application/vnd.perspex.pinned+json"

# Each makes `big` in a function, has a weak reference to it noted, and fails with a ValueError.
FAILING = {
    "a function": "def f():\n    big = note(jnp.ones(1 << 19))\n    raise ValueError('no')\nf()",
    "a cause": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n    1 / 0\n"
        "def g():\n    try:\n        f()\n"
        "    except ZeroDivisionError as error:\n        raise ValueError('no') from error\ng()"
    ),
    "a context": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n    1 / 0\n"
        "try:\n    f()\nexcept ZeroDivisionError:\n    raise ValueError('no')"
    ),
    "an error kept in a cycle": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n    kept = ValueError('no')\n"
        "    raise kept\nf()"
    ),
    "tracing": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n"
        "    def loss(x):\n        if x > 0: return big.sum()\n"
        "        return x\n    return perspex.jit(loss)(1.0)\n"
        "try:\n    f()\nexcept TypeError as error:\n    raise ValueError('no') from error"
    ),
    "a gradient": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n"
        "    def loss(x):\n        y = (x * big).sum()\n        raise ValueError(x)\n"
        "    return perspex.grad(loss)(1.0)\nf()"
    ),
    "a cell under %%jit": (
        "%%jit\ndef f(x):\n    big = note(concrete())\n    raise ValueError('no')\nf(1.0)"
    ),
    "a cell under %%grad": (
        "%%grad w\ndef f(x):\n    big = note(concrete())\n    raise ValueError('no')\nf(w)"
    ),
    "a generator": (
        "def g():\n    big = note(jnp.ones(1 << 19))\n    yield 1\n    raise ValueError('no')\n"
        "list(g())"
    ),
    "a coroutine in a cycle": (
        "import asyncio\nasync def f():\n    big = note(jnp.ones(1 << 19))\n"
        "    await asyncio.sleep(0)\n    kept = ValueError('no')\n    raise kept\nawait f()"
    ),
    "an exception group": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n    raise KeyError('a')\n"
        "def g():\n    try:\n        f()\n    except KeyError as error:\n"
        "        raise ExceptionGroup('all', [ValueError('no'), error]) from None\n"
        "try:\n    g()\nexcept ExceptionGroup as group:\n    raise ValueError('no') from group"
    ),
    "the error's own value": (
        "def f():\n    big = note(jnp.ones(1 << 19))\n    raise ValueError('no', big)\nf()"
    ),
    "the object of an AttributeError": (
        "def f():\n    note(jnp.ones(1 << 19)).nothing_like_it\n"
        "try:\n    f()\nexcept AttributeError as error:\n    raise ValueError('no') from error"
    ),
}


@pytest.fixture
def noted(notebook: Notebook) -> list[weakref.ref[Any]]:
    """Weak references to the arrays that a cell called `note` with."""
    refs: list[weakref.ref[Any]] = []

    def note(array: Any) -> Any:
        refs.append(weakref.ref(array))
        return array

    # Made before anything is traced.
    ready = [jnp.ones(1 << 19)]
    notebook.ns.update(note=note, concrete=ready.pop, w=1.0)
    return refs


def alive(noted: list[weakref.ref[Any]]) -> list[bool]:
    return [array() is not None for array in noted]


@pytest.mark.parametrize("cell", FAILING.values(), ids=FAILING)
def test_the_next_cell_lets_go(
    notebook: Notebook, noted: list[weakref.ref[Any]], cell: str
) -> None:
    notebook.fails(cell, ValueError)
    assert alive(noted) == [True]
    gc.disable()
    try:
        notebook.ok("pass")
        assert alive(noted) == [False]
    finally:
        gc.enable()


def test_without_the_extension_it_stays(notebook: Notebook, noted: list[weakref.ref[Any]]) -> None:
    notebook.ok("%unload_ext perspex_magics")
    notebook.fails(FAILING["a function"], ValueError)
    notebook.ok("pass")
    gc.collect()
    assert alive(noted) == [True]


def test_the_notice(notebook: Notebook, noted: list[weakref.ref[Any]]) -> None:
    notebook.fails(
        "def layer(x):\n    h = x + 1\n    raise ValueError\n"
        "def train(n):\n    big = jnp.ones((n, n))\n    layer(big)\ntrain(512)",
        ValueError,
    )
    shown = notebook.displayed[-1]
    # Two arrays of 512 * 512 * 4 bytes = 1 MiB; `x` is `big`.
    holders = {(h["name"], h["function"]): h["bytes"] for h in shown[PINNED]["holders"]}
    assert holders == {("big", "train()"): 1 << 20, ("h", "layer()"): 1 << 20}
    assert shown[PINNED]["bytes"] == 2 << 20
    for part in ("2.00 MiB", "`big` in train()", "`h` in layer()", "%debug"):
        assert part in shown["text/plain"]
    assert "<code" in shown["text/html"] and "<script" not in shown["text/html"]


def test_what_has_a_name_is_not_pinned(notebook: Notebook) -> None:
    notebook.ok("w = jnp.ones((1024, 1024))")
    notebook.fails("def f(x):\n    raise ValueError\nf(w)", ValueError)
    assert notebook.displayed == []


def test_small_arrays_are_not_worth_a_notice(notebook: Notebook) -> None:
    # 2 ** 18 - 1 numbers of 4 bytes are 4 bytes less than 1 MiB.
    for size, shown in (((1 << 18) - 1, False), (1 << 18, True)):
        notebook.fails(f"def f():\n    x = jnp.ones({size})\n    1 / 0\nf()", ZeroDivisionError)
        assert bool(notebook.displayed) == shown


LOOKING = [
    "%tb",
    "%xmode Context",
    "import pdb",
    "import sys\nsys.last_traceback is None",
    "%buffers",
]


@pytest.mark.parametrize("cell", LOOKING)
def test_cells_that_look_at_the_error_keep_it(
    notebook: Notebook, noted: list[weakref.ref[Any]], cell: str
) -> None:
    notebook.fails(FAILING["a function"], ValueError)
    notebook.ok(cell)
    assert alive(noted) == [True]
    tb = sys.last_traceback
    while tb.tb_next is not None:
        tb = tb.tb_next
    assert float(tb.tb_frame.f_locals["big"].sum()) == 1 << 19
    del tb
    notebook.ok("pass")
    assert alive(noted) == [False]


@pytest.mark.parametrize("cell", ["debug = True", "tb = 1", "path = '1abc.pdb'", "%who"])
def test_other_cells_do_not(notebook: Notebook, noted: list[weakref.ref[Any]], cell: str) -> None:
    notebook.fails(FAILING["a function"], ValueError)
    notebook.ok(cell)
    assert alive(noted) == [False]


def test_the_traceback_stays_as_text(notebook: Notebook, noted: object) -> None:
    shown = notebook.fails(FAILING["a cause"], ValueError)
    notebook.ok("pass")
    notebook.ok("pass")
    notebook.ok("%tb")
    assert notebook.out.strip() == shown.strip()
    assert "ZeroDivisionError" in shown and "1 / 0" in shown
    assert str(sys.last_value) == "no" and sys.last_type.__name__ == "ValueError"


def test_usage_errors_and_groups_are_shown_again(notebook: Notebook) -> None:
    for cell, shown in [
        ("%buffers --top x", "UsageError: %buffers: argument --top"),
        ("raise ExceptionGroup('all', [ValueError('first'), KeyError('second')])", "first"),
        ("def f(:", "SyntaxError"),
    ]:
        assert not notebook.run(cell).success
        notebook.ok("pass")
        notebook.ok("%tb")
        assert shown in notebook.out


def test_debugging_too_late_is_explained(notebook: Notebook, noted: object) -> None:
    notebook.fails(FAILING["a function"], ValueError)
    notebook.ok("pass")
    notebook.ok("%debug")
    assert "are gone" in notebook.out
    notebook.ok("%tb")
    assert "ValueError: no" in notebook.out


def test_an_error_that_a_variable_keeps_is_left_alone(
    notebook: Notebook, noted: list[weakref.ref[Any]]
) -> None:
    notebook.ok(
        "def f():\n    big = note(jnp.ones(1 << 19))\n    raise ValueError('no')\n"
        "errors = []\ntry:\n    f()\nexcept ValueError as error:\n    errors.append(error)"
    )
    notebook.fails("raise errors[0]", ValueError)
    notebook.ok("pass")
    frame = notebook.ok(
        "tb = errors[0].__traceback__\nwhile tb.tb_next: tb = tb.tb_next\ntb.tb_frame"
    )
    assert float(frame.f_locals["big"].sum()) == 1 << 19
    assert alive(noted) == [True]


KEEPING = {
    "a future": (
        "from concurrent.futures import Future\nkept = Future()",
        "kept.set_exception(error)",
        "kept.exception().__traceback__",
    ),
    "an attribute": ("class Kept: pass\nkept = Kept()", "kept.e = error", "kept.e.__traceback__"),
    "a deque": (
        "from collections import deque\nkept = deque()",
        "kept.append(error.__traceback__)",
        "kept[0]",
    ),
    "another error": (
        "kept = RuntimeError()",
        "kept.__cause__ = error",
        "kept.__cause__.__traceback__",
    ),
}


@pytest.mark.parametrize(("ready", "keep", "tb"), KEEPING.values(), ids=KEEPING)
def test_what_keeps_an_error_keeps_its_frames(
    notebook: Notebook, noted: list[weakref.ref[Any]], ready: str, keep: str, tb: str
) -> None:
    notebook.ok(ready)
    notebook.fails(
        "def f():\n    big = note(jnp.ones(1 << 19))\n    raise ValueError('no')\n"
        f"try:\n    f()\nexcept ValueError as error:\n    {keep}\n    raise",
        ValueError,
    )
    assert notebook.displayed == []  # it is not so that the next cell lets go of it
    notebook.ok("pass")
    assert alive(noted) == [True]
    notebook.ok(f"tb = {tb}\nwhile tb.tb_next: tb = tb.tb_next")
    assert notebook.ok("float(tb.tb_frame.f_locals['big'].sum())") == 1 << 19


def test_generators_that_go_on_are_not_ended(notebook: Notebook) -> None:
    notebook.ok(
        "def g():\n    try:\n        yield 1\n    except KeyError as error:\n"
        "        yield error\n    yield 'alive'\n"
        "it = g(); next(it)"
    )
    notebook.fails("raise ValueError('no') from it.throw(KeyError('k'))", ValueError)
    notebook.ok("pass")
    assert notebook.ok("next(it)") == "alive"


def test_the_result_of_the_failed_cell_stays_what_it_is(notebook: Notebook) -> None:
    result = notebook.run("1 / 0")
    notebook.ok("pass")
    assert isinstance(result.error_in_exec, ZeroDivisionError)


def test_unloading_leaves_nothing(shell: InteractiveShell) -> None:
    notebook = Notebook(shell)
    before = len(memory.owners), "_showtraceback" in vars(shell)
    notebook.ok("%load_ext perspex_magics")
    assert len(memory.owners) == before[0] + 1
    notebook.ok("%unload_ext perspex_magics")
    assert (len(memory.owners), "_showtraceback" in vars(shell)) == before


def test_errors_that_cannot_be_written(notebook: Notebook, noted: list[weakref.ref[Any]]) -> None:
    notebook.run(
        "class Mute(Exception):\n    def __str__(self): raise RuntimeError\n"
        "def f():\n    big = note(jnp.ones(1 << 19))\n    raise Mute\nf()"
    )
    notebook.ok("pass")
    gc.collect()  # what IPython made of it in vain
    assert alive(noted) == [False]
    assert "Error in callback" not in notebook.out


# ---- Out of memory ------------------------------------------------------------------------------

# 2**46 bytes: more than any machine has, and refused before anything is taken.
HUGE = "jnp.ones(2**44)"


def test_owners_are_named_when_memory_is_exhausted(notebook: Notebook) -> None:
    notebook.ok("weights = jnp.ones((700, 1000)); batch = jnp.ones((500, 1000))")
    shown = notebook.fails(HUGE, JaxRuntimeError, "RESOURCE_EXHAUSTED")
    # 700,000 and 500,000 numbers of 4 bytes.
    assert shown.index("weights 2.67 MiB") < shown.index("batch 1.91 MiB")
    assert shown.count("Live arrays hold") == 1


def test_variables_of_running_functions_are_named(notebook: Notebook) -> None:
    notebook.ok(
        f"def train():\n    state = {{'m': jnp.ones((900, 1000))}}\n    try:\n        {HUGE}\n"
        "    except Exception as error:\n        return error.__notes__\nnotes = train()"
    )
    assert "state in train() (running) 3.43 MiB" in notebook.ns["notes"][0]


def test_repeated_calls_are_told_as_well(notebook: Notebook) -> None:
    # The second call is made by C++, where no Python of ours can tell the error anything.
    notebook.ok("weights = jnp.ones((700, 1000))")
    notebook.ok("f = perspex.jit(lambda x: jnp.broadcast_to(x, (2**44,)) + 1)")
    for _ in range(3):
        shown = notebook.fails("f(1.0).block_until_ready()", JaxRuntimeError, "EXHAUSTED")
        assert "weights 2.67 MiB" in shown and shown.count("Live arrays hold") == 1


def test_numpy_out_of_memory_is_told_as_well(notebook: Notebook) -> None:
    notebook.ok("weights = jnp.ones((700, 1000))")
    shown = notebook.fails("np.ones(2**58, np.uint8)", MemoryError)
    assert "weights 2.67 MiB" in shown


def test_the_note_is_not_repeated(notebook: Notebook) -> None:
    notebook.ok("weights = jnp.ones((700, 1000))")
    first = notebook.fails(HUGE, JaxRuntimeError)
    notebook.ok("weights = None")
    notebook.ok("%tb")
    assert notebook.out.strip() == first.strip()


def test_other_errors_are_told_nothing(notebook: Notebook) -> None:
    shown = notebook.fails("raise ValueError('RESOURCES')", ValueError)
    assert "Live arrays" not in shown


def test_plain_python_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "owners", [])
    with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        perspex.block_until_ready(jnp.ones(2**44))
    assert not hasattr(caught.value, "__notes__")
