"""Which names a cell reads and assigns."""

from __future__ import annotations

import ast

import pytest

from perspex_magics.notebook.names import (
    Changes,
    find_changes,
    find_named,
    find_names,
    global_reads,
)

# A cell, what it reads before assigning it, what it may assign, what it certainly assigns.
CELLS = [
    ("y = x", "x", "y", "y"),
    ("t = x; y = t", "x", "t y", "t y"),
    ("x += 1", "x", "x", "x"),
    ("x[0] = 1", "x", "", ""),
    ("x.a = y", "x y", "", ""),
    ("a, (b, *c) = x", "x", "a b c", "a b c"),
    ("y: int = x", "int x", "y", "y"),
    ("y: int", "int", "", ""),
    ("del x", "", "x", ""),
    ("y = 1; del y; y", "y", "y", ""),
    ("import a.b as c, d.e", "", "c d", "c d"),
    ("from m import f as g", "", "g", "g"),
    ("if c: y = 1\nelse: y = 2", "c", "y", "y"),
    ("if c: y = 1\ny", "c y", "y", ""),
    ("for i in xs: s = s + i", "xs s", "i s", ""),
    ("for i in xs:\n    t = i\n    if t: break\nelse: u = 1", "xs", "i t u", ""),
    ("while n: n = n - 1", "n", "n", ""),
    ("with f() as g: y = g", "f", "g y", "g"),
    ("try: y = x\nexcept E as e: y = e", "x E", "y e", "y"),
    ("try: y = x\nfinally: z = 1", "x", "y z", "y z"),
    (
        "match x:\n    case [a, *b]: y = a\n    case {'k': c, **d} if c: y = P",
        "x P",
        "a b c d y",
        "",
    ),
    ("match x:\n    case P(a=1): y = 1", "x P", "y", ""),
    ("for i in xs:\n    match i:\n        case 1: break", "xs", "i", ""),
    ("y = [a * i for i in xs if (w := i) > b]", "a xs b", "y w", "y"),
    ("f = lambda x: x + c", "c", "f", "f"),
    ("def f(x, y=d): return x + c", "d c", "f", "f"),
    ("def f():\n    global g\n    g = h", "h", "f g", "f"),
    ("def f():\n    def k(): return c + z\n    z = 1", "c", "f", "f"),
    ("class A(B):\n    u = v\n    def m(self): return w", "B v w", "A", "A"),
    ("@dec\ndef f(): pass", "dec", "f", "f"),
    ("x and (y := 1)\ny", "x y", "y", ""),
    ("print(x)", "print x", "", ""),
    ("assert x, y", "x y", "", ""),
]


@pytest.mark.parametrize(("cell", "reads", "writes", "certain"), CELLS, ids=[c[0] for c in CELLS])
def test_names(cell: str, reads: str, writes: str, certain: str) -> None:
    found = find_names(ast.parse(cell).body)
    assert found.reads == set(reads.split())
    assert found.writes == set(writes.split())
    assert found.certain == set(certain.split())


def test_certain_names_are_assigned() -> None:
    """What running the cells says: `certain` is there, and nothing is beyond `writes`."""
    known = {"x": [1, 2], "xs": [1, 2], "c": 1, "n": 2, "s": 0, "a": 1, "b": 0, "d": 1, "v": 1}
    ran = 0
    for cell, _, writes, certain in CELLS:
        namespace = dict(known)
        try:
            exec(cell, namespace)
        except Exception:
            continue
        ran += 1
        namespace.pop("__builtins__")
        new = {name for name, value in namespace.items() if value is not known.get(name, ...)}
        assert new - {"__annotations__"} <= set(writes.split()), cell
        assert set(certain.split()) <= namespace.keys(), cell
    assert ran > 15


def test_global_reads_of_nested_functions() -> None:
    scope: dict[str, object] = {}
    exec("def f(x):\n    def g(): return [h(y, x) for y in z]\n    return g", scope)
    assert global_reads(scope["f"].__code__) == {"h", "z"}  # type: ignore[attr-defined]


# What the compiler says that a cell assigns is what the forms of its statements say.
ASSIGNS = [
    "a = b = 1",
    "a, (b, *c) = d[0], e.f = 1, (2, 3)",
    "a += 1",
    "a: int = 1",
    "del a, b[0], c.d",
    "for a, b in c:\n    d = 1\nelse:\n    e = 2",
    "while a:\n    b = 1",
    "with a as b, c as (d, e):\n    f = 1",
    "try:\n    a = 1\nexcept ValueError as b:\n    c = 1\nelse:\n    d = 1\nfinally:\n    e = 1",
    "match a:\n    case [b, *c]:\n        d = 1\n    case {'k': e, **f} | (e, f):\n        pass",
    "match a:\n    case int(b) as c if (d := b):\n        pass",
    "def f(a, b=(c := 1)):\n    d = 1\n    def e(): pass",
    "class C(B):\n    a = 1\n    def b(self): c = 1",
    "@(a := staticmethod)\nclass C((b := object), metaclass=(c := type)): pass",
    "@(a := staticmethod)\ndef f(*, b, c=(d := 1)): pass",
    "async def f(a=(b := 1)): pass",
    "f = lambda a=(b := 1): (c := a)",
    "import a.b, c.d as e\nfrom f import g, h as i",
    "from f import *",
    "if (a := 1) and (b := 2):\n    c = [d for d in range(3) if (e := d)]",
    "print(a, b=(c := 1))",
]


@pytest.mark.parametrize("source", ASSIGNS)
def test_forms_say_what_the_compiler_says(source: str) -> None:
    tree = ast.parse(source)
    changes: dict[ast.stmt, Changes] = {}
    find_changes(tree.body, changes)
    bound = {name for names, _ in changes.values() for name in names}
    bound |= {expression.target.id for expression in find_named(tree)}
    assert bound == find_names(tree.body).writes
