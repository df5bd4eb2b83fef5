"""Documents of programs: the schema holds, and lines that are linked do belong together."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from support.steps import calls

import perspex
import perspex.numpy as jnp
import perspex_magics
from perspex import lax
from perspex.base import events
from perspex.runtime.compiler import cache
from perspex_magics.documents.program import document

SCHEMA = json.loads((Path(perspex_magics.__file__).parent / "panel/schema.json").read_text())
X = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
FORMS = ("jaxpr", "stablehlo", "hlo")

TEXT = """
def f(x):
    y = jnp.sin(x) @ x
    def step(c, _):
        return jnp.tanh(c) + y, None
    c, _ = lax.scan(step, x, None, length=3)
    z = lax.cond(c[0, 0] > 0, jnp.exp, jnp.cos, c)
    return perspex.jit(lambda a: jnp.log1p(a * a))(z)
"""
# Which line of it holds which operation, by its names in the three compiled forms.
LINES = {
    3: ("sin", "stablehlo.sine", "sine("),
    5: ("tanh", "stablehlo.tanh", "tanh("),
    8: ("log1p", "stablehlo.log_plus_one", "log-plus-one("),
}


def defined(text: str, file: str) -> Any:
    namespace = {"perspex": perspex, "jnp": jnp, "lax": lax}
    exec(compile(text, file, "exec"), namespace)
    return perspex.jit(namespace["f"])


def described(traced: Any, **named: Any) -> dict[str, Any]:
    """The document as the page gets it, with its tables row by row."""
    found = json.loads(json.dumps(document(traced, **named)))
    program = {"$ref": "#/definitions/Program", "definitions": SCHEMA["definitions"]}
    jsonschema.validate(found, program)
    for form in FORMS:
        found[form] = by_lines(found[form])
    for one in found["sources"]:
        one["lines"] = by_lines(one["lines"])
    table = found["equations"]
    table["at"] = [table["lines"][i] for i in table["at"]]
    del table["lines"]
    rows = zip(*table.values(), strict=True)
    return {**found, "equations": [dict(zip(table, row, strict=True)) for row in rows]}


def by_lines(listing: dict[str, Any]) -> list[dict[str, Any]]:
    folds = dict(listing["folds"])
    pairs = zip(listing["text"].split("\n"), listing["links"], strict=True)
    return [
        {
            "text": text,
            "fold": folds.get(i, 0),
            "links": link if isinstance(link, list) else [] if link is None else [link],
        }
        for i, (text, link) in enumerate(pairs)
    ]


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "model.py"
    file.write_text(TEXT)
    return described(defined(TEXT, str(file)).trace(X))


def linked(found: dict[str, Any], form: str, text: str) -> set[int]:
    """The equations behind the lines that hold a text."""
    lines = [line for line in found[form] if text in line["text"]]
    assert lines, text
    return {link for line in lines for link in line["links"]}


def test_the_four_forms_of_an_operation_are_linked(found: dict[str, Any]) -> None:
    (source,) = found["sources"]
    for number, (primitive, stablehlo, hlo) in LINES.items():
        (equation,) = [
            i for i, one in enumerate(found["equations"]) if one["primitive"] == primitive
        ]
        assert linked(found, "stablehlo", stablehlo) == {equation}
        assert linked(found, "hlo", f" {hlo}") == {equation}
        assert equation in linked(found, "jaxpr", f" = {primitive} ")
        assert equation in source["lines"][number - source["first"]]["links"]
        assert found["equations"][equation]["at"] == f"model.py:{number}"


def test_each_line_says_what_the_listing_of_the_compiler_says(tmp_path: Path) -> None:
    f = defined(TEXT, str(tmp_path / "model.py"))
    traced = f.trace(X)
    found = described(traced)
    assert "\n".join(line["text"] for line in found["jaxpr"]) == str(traced.jaxpr)
    assert [line["text"] for line in found["stablehlo"]] == traced.lower().as_text().splitlines()
    without = re.sub(r", metadata=\{[^}]*\}", "", traced.lower().compile().as_text())
    rows = [row for row in without.splitlines() if row.startswith((" ", "%", "ENTRY"))]
    assert [line["text"] for line in found["hlo"] if line["text"][0] in " %E"] == rows


def test_folds_hold_what_is_inside(found: dict[str, Any]) -> None:
    for form in FORMS:
        lines = found[form]
        for i, line in enumerate(lines):
            inside = lines[i + 1 : i + 1 + line["fold"]]
            assert len(inside) == line["fold"]
            indent = len(line["text"]) - len(line["text"].lstrip())
            assert all(
                len(one["text"]) - len(one["text"].lstrip()) > indent or not one["text"].strip()
                for one in inside
            )
    (loop,) = [line for line in found["jaxpr"] if "= scan[" in line["text"]]
    start = found["jaxpr"].index(loop)
    texts = [line["text"] for line in found["jaxpr"][start : start + loop["fold"]]]
    assert any("tanh" in text for text in texts)


def test_a_fusion_is_linked_to_all_that_is_in_it() -> None:
    traced = perspex.jit(lambda x: jnp.exp(x) * 2 + jnp.cos(x)).trace(X)
    found = described(traced)
    (fusion,) = [line for line in found["hlo"] if " fusion(" in line["text"]]
    assert {found["equations"][i]["primitive"] for i in fusion["links"]} == {
        "exp",
        "mul",
        "cos",
        "add",
    }


def test_equations_know_what_they_read_and_where_they_stand(found: dict[str, Any]) -> None:
    equations = found["equations"]
    names = [one["primitive"] for one in equations]
    scan, tanh, sin = names.index("scan"), names.index("tanh"), names.index("sin")
    assert equations[tanh]["parent"] == scan and equations[scan]["parent"] == -1
    assert equations[names.index("dot_general")]["inputs"] == [sin]
    assert all(i < n for n, one in enumerate(equations) for i in one["inputs"])


def test_an_executable_of_another_place_is_linked_to_this_one(tmp_path: Path) -> None:
    """Dead equations shift all numbers, and the module that XLA compiled stays the same."""
    first = defined(TEXT, str(tmp_path / "first.py"))
    first(X)
    text = TEXT.replace("    y = ", "    dead = jnp.arctan(x) * 3\n    y = ")
    before = cache.counts.memory
    found = described(defined(text, str(tmp_path / "second.py")).trace(X))
    assert cache.counts.memory > before
    (tanh,) = [i for i, one in enumerate(found["equations"]) if one["primitive"] == "tanh"]
    assert linked(found, "hlo", " tanh(") == {tanh}
    assert found["equations"][tanh]["at"] == "second.py:6"


def test_a_product_that_xla_has_joined_with_a_transpose_is_both() -> None:
    found = described(perspex.jit(lambda x: jnp.fft.fft((x @ x + 0j).T @ x, axis=0)).trace(X))
    kinds = [
        {found["equations"][i]["primitive"] for i in line["links"]}
        for line in found["hlo"]
        if " dot(" in line["text"]
    ]
    assert kinds and all("dot_general" in kind for kind in kinds)


def test_nobody_is_told_and_nothing_is_compiled_twice() -> None:
    g = perspex.jit(lambda x: jnp.sin(x) * perspex.pure_callback(np.cos, x, x))
    g(X)  # a program that calls Python is in no cache
    traced, before = g.trace(X), vars(cache.counts).copy()
    seen: list[events.Event] = []
    stop = events.subscribe(seen.append)
    described(traced)
    stop()
    assert not seen and vars(cache.counts) == before


def test_hostile_names_and_long_lines(tmp_path: Path) -> None:
    long = "x" * 5_000
    text = f"def f(x):\n    return jnp.sin(x)  # <img onerror=1> \u202e {long}\n"
    file = tmp_path / "a\u202eb<i>.py"
    file.write_text(text, encoding="utf-8")
    found = described(defined(text, str(file)).trace(X), name="<script>")
    assert found["name"] == "<script>"
    (source,) = found["sources"]
    assert "<img onerror=1>" in source["lines"][1]["text"]
    assert len(source["lines"][1]["text"]) < 2_100


WORK: dict[str, Any] = {
    "dot": lambda x: x @ x,
    "sums": lambda x: x + x * x - 3,
    "reduction": lambda x: x.sum(axis=1),
    "moves": lambda x: x.T[::-1].reshape(3, 12),
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "VALID"),
}


@pytest.mark.parametrize("name", WORK)
def test_flops_are_those_that_xla_counts(name: str) -> None:
    """Before optimization, where XLA counts the same operations as the equations do."""
    traced = perspex.jit(WORK[name]).trace(X)
    found = sum(one["flops"] for one in described(traced)["equations"])
    counted = traced.lower().cost_analysis().get("flops", 0.0)
    # XLA counts one addition less for each sum of several numbers.
    assert counted <= found <= counted + (6 if name == "reduction" else 0)


def test_flops_of_loops_and_of_what_nobody_knows() -> None:
    def body(c: Any, _: Any) -> Any:
        return c @ c, None

    one = describe_flops(lambda x: x @ x)
    assert describe_flops(lambda x: lax.scan(body, x, None, length=7)[0]) == 7 * one
    assert describe_flops(lambda x: perspex.jit(lambda y: y @ y)(x)) == one
    assert (
        describe_flops(lambda x: lax.while_loop(lambda c: c[0, 0] < 1, lambda c: c @ c, x)) is None
    )
    found = described(perspex.jit(lambda x: jnp.sort(x)).trace(X))
    assert any("FLOPs unknown: the program contains 1 sort" in note for note in found["notes"])


def describe_flops(f: Any) -> float | None:
    (outermost,) = [
        one for one in described(perspex.jit(f).trace(X))["equations"] if one["parent"] == -1
    ]
    flops: float | None = outermost["flops"]
    return flops


def test_a_text_of_several_lines_does_not_shift_the_links_of_those_below() -> None:
    def f(x: Any) -> Any:
        perspex.debug.print("one\ntwo {}", x)
        return jnp.sin(x)

    traced = perspex.jit(f).trace(X)
    found = described(traced)
    assert "\n".join(line["text"] for line in found["jaxpr"]) == str(traced.jaxpr)
    (sine,) = [line for line in found["jaxpr"] if " sin " in line["text"]]
    assert [found["equations"][i]["primitive"] for i in sine["links"]] == ["sin"]
    (second,) = [line for line in found["jaxpr"] if line["text"].startswith("two {}")]
    assert [found["equations"][i]["primitive"] for i in second["links"]] == ["debug_print"]


def test_making_a_document_leaves_the_collection_of_garbage_as_it_was() -> None:
    traced = perspex.jit(jnp.sin).trace(X)
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    try:
        document(traced)
        assert gc.get_threshold() == (701, 11, 12)

        def user(file: str) -> str:
            gc.set_threshold(777, 5, 5)  # in the meantime, in another thread
            return ""

        document(traced, cell_of=user)
        assert gc.get_threshold() == (777, 5, 5)
    finally:
        gc.set_threshold(*before)


def test_an_equation_takes_a_few_hundred_calls() -> None:
    """So 10,000 of them are shown in less than a second."""

    def long(x: Any) -> Any:
        for _ in range(500):
            x = jnp.tanh(x) * 2 + x - 1
        return x

    traced = perspex.jit(long).trace(X)
    traced.compiled()
    assert len(document(traced)["equations"]["primitive"]) == 2_000
    # 463 each where this was written.
    assert calls(lambda: document(traced)) < 600 * 2_000
