"""The line under a cell that used a key again.

What is right is known from the cells: they are written so.
"""

from __future__ import annotations

import pytest
from support.shells import Notebook

from perspex.runtime import key_reuse
from perspex.runtime.executable import Executable

KIND = "application/vnd.perspex.keyreuse+json"
STEP = """
@perspex.jit
def step(x, key):
    return x + random.normal(key, x.shape)
"""


@pytest.fixture(params=["key", "PRNGKey"])
def cells(notebook: Notebook, request: pytest.FixtureRequest) -> Notebook:
    """A notebook whose `make` makes keys of either kind."""
    notebook.ok(f"from perspex import lax, random\nmake = random.{request.param}\nx = np.ones(3)")
    return notebook


def told(cells: Notebook, code: str) -> list[str]:
    """What is said under a cell of the keys that it uses again."""
    cells.ok(code)
    found = [bundle for bundle in cells.displayed if KIND in bundle]
    assert len(found) <= 1
    for bundle in found:
        lines = bundle["text/plain"].split("\n")
        told = [f"Key reuse: {text}" for text in bundle[KIND]["told"]]
        assert lines == [*told, "`%explain keyreuse` says more."]
        assert "<script" not in bundle["text/html"]
    return [text for bundle in found for text in bundle[KIND]["told"]]


def test_two_cells(cells: Notebook) -> None:
    assert not told(cells, "key = make(0)")
    assert not told(cells, "a = random.normal(key, (3,))")
    n = cells.shell.execution_count
    (text,) = told(cells, "b = random.normal(key, (3,))  # again")
    assert text.startswith(
        f"`key` (Cell In[{n - 2}]:1) was used 2 times, by `random.normal(key, (3,))` at "
        f"Cell In[{n - 1}]:1 and `random.normal(key, (3,))` at Cell In[{n}]:1. The results are "
        "equal."
    )
    assert bool((cells.shell.user_ns["a"] == cells.shell.user_ns["b"]).all())
    assert "`random.clone(key)` if you mean it" in text


def test_once_for_the_same_lines(cells: Notebook) -> None:
    cell = "key = make(1)\na = random.normal(key), random.uniform(key)"
    (text,) = told(cells, cell)
    assert "not independent" in text
    assert not told(cells, cell)
    assert told(cells, "key = make(1)\nb = random.gumbel(key), random.uniform(key)")


@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("[random.normal(key) for _ in range(3)]", "3"),
        (STEP + "for _ in range(5):\n    x = step(x, key)", "5"),
        (STEP + "for _ in range(50):\n    x = step(x, key)", "at least 16"),
        ("k1, k2 = random.split(key)\ny = random.normal(key)", "2"),
        (
            "f = lambda x: x * random.normal(key)\nfor _ in range(2):\n    g = perspex.grad(f)(1.)",
            "2",
        ),
        (
            "@perspex.jit\ndef f(key):\n    return random.normal(key), random.normal(key)\nf(key)",
            "2",
        ),
    ],
)
def test_ways_to_use_a_key_again(cells: Notebook, code: str, times: str) -> None:
    (text,) = told(cells, f"key = make(2)\n{code};")
    assert f" was used {times} times, by " in text


@pytest.mark.parametrize(
    "loop",
    [
        "lax.fori_loop(0, 4, lambda i, c: c + random.uniform(key), 0.)",
        "lax.scan(lambda c, _: (c + random.uniform(key), None), 0., None, length=3)",
        "lax.map(lambda x: x + random.normal(key), np.arange(3.))",
        "lax.while_loop(lambda c: c < 3, lambda c: c + 1 + random.uniform(key), 0.)",
    ],
)
def test_a_loop_with_one_key(cells: Notebook, loop: str) -> None:
    (text,) = told(cells, f"key = make(3)\n{loop};")
    n = cells.shell.execution_count - 1
    assert text.startswith(f"The loop at Cell In[{n}]:2 uses the same random key on each turn")
    (text,) = told(cells, f"perspex.jit(lambda key: {loop})(make(4));")
    assert "uses the same random key on each turn" in text


@pytest.mark.parametrize(
    "code",
    [
        "for _ in range(20):\n    key, sub = random.split(key)\n    y = random.normal(sub)",
        STEP + "for i in range(20):\n    x = step(x, random.fold_in(key, i))",
        STEP + "for sub in random.split(key, 20):\n    x = step(x, sub)",
        "a = random.normal(key)\nb = random.normal(random.clone(key))",
        "lax.fori_loop(0, 4, lambda i, c: c + random.uniform(random.fold_in(key, i)), 0.);",
        "lax.scan(lambda c, k: (c + random.uniform(k), None), 0., random.split(key, 3));",
        "perspex.vmap(random.normal)(random.split(key, 4));",
        "def turn(key, _):\n    key, sub = random.split(key)\n    return key, random.normal(sub)\n"
        "lax.scan(turn, key, None, length=4);",
        "perspex.jit(lambda key: random.gamma(key, 2., (3,)))(key);",
        "perspex.grad(lambda x: x * random.normal(key))(1.);",
        "@perspex.jit\ndef f(key):\n    a, b = random.split(key)\n"
        "    return random.normal(a), random.normal(b)\nf(key);",
    ],
)
def test_what_is_sound(cells: Notebook, code: str) -> None:
    assert not told(cells, f"key = make(5)\n{code}")


def test_quiet(cells: Notebook) -> None:
    cells.ok("%keys quiet")
    assert not told(cells, "key = make(6)\nrandom.normal(key), random.normal(key);")
    cells.ok("%keys on")
    assert told(cells, "key = make(7)\nrandom.normal(key), random.uniform(key);")
    cells.ok("%keys off")
    assert not told(cells, "key = make(8)\nrandom.normal(key), random.gumbel(key);")


def test_cpp_repeats_the_later_runs(cells: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    cells.ok(f"{STEP}key = make(9)\nfor k in random.split(key, 40):\n    x = step(x, k)")
    seen: list[str] = []
    own = Executable.__call__
    monkeypatch.setattr(
        Executable, "__call__", lambda self, args: seen.append(self.name) or own(self, args)
    )
    cells.ok("for k in random.split(key, 40):\n    x = step(x, k)  # later")
    assert seen.count("step") == key_reuse.MOST_TOLD
