"""The fuzzer itself: what it generates, compares, shrinks, and survives. Without jax."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.calls import CALLS, USES, Calls
from fuzz.compare import Difference, differences, nearer, recovered
from fuzz.coverage import Counted, Matrix
from fuzz.differential import Pair
from fuzz.every_dtype import OfDtype
from fuzz.findings import Finding, Findings, cause, oracle_case
from fuzz.generator import ENTRIES, Generator
from fuzz.meant import meant
from fuzz.process import Broken, Worker
from fuzz.programs import Program, Statement, noisy, notebook
from fuzz.scope import NAMES, Scope
from fuzz.shrink import shrink


def array(values: Any, dtype: str = "float32", weak: bool = False) -> list[Any]:
    x = np.asarray(values, dtype)
    data = base64.b64encode(x.tobytes()).decode()
    return ["array", x.dtype.name, list(x.shape), weak, data]


def statements(text: str) -> list[Statement]:
    return [Statement(line, line.partition(" = ")[0]) for line in text.strip().splitlines()]


# ---- Programs -----------------------------------------------------------------------------------


def test_a_seed_gives_one_program() -> None:
    assert Generator(12).program() == Generator(12).program()
    assert Generator(12).program() != Generator(13).program()


def test_seeds_of_calls_go_round_the_templates() -> None:
    for place, entry in list(enumerate(CALLS))[::200]:
        program = Calls(place + len(CALLS)).program()
        function = re.match(r"[\w.]*", entry.text)
        assert program == Calls(place + len(CALLS)).program() and program.run == "compiled"
        assert function and f"v0 = {function[0]}" in program.body[0].text, entry.text
        assert len(program.tail) == 1 + len(USES)


def test_operands_of_a_dtype_are_made_before_they_are_used() -> None:
    programs = list(OfDtype(0, ["weak int", "int4"], False, size=2).statements(CALLS[::40]))
    names: dict[str, Any] = dict(NAMES)
    for line in (s for program in programs for s in program if s.target.startswith("x_")):
        exec(line.text, names)
    made = {name: value for name, value in names.items() if name.startswith("x_")}
    assert {value.weak_type for value in made.values()} == {True, False}
    assert {size for value in made.values() for size in value.shape} == {2}
    for line in (s for program in programs for s in program if s.target.startswith("v")):
        assert set(re.findall(r"\bx_\w+", line.text)) <= made.keys(), line.text


def test_every_template_is_python() -> None:
    for entry in ENTRIES:
        generator = Generator(3)
        text = generator.filled(Scope(), entry)
        assert not re.search(r"\{[a-z=]", text), entry.text
        compile(text, entry.text, "eval")


def test_a_cell_has_what_the_program_needs() -> None:
    cell = notebook(tuple(statements("v0 = forward(jnp.sin)(1.0)")), True)
    assert "def tangent" in cell and "def lanes" not in cell and "enable_x64" in cell
    compile(cell, "<cell>", "exec")


def test_noise_is_put_into_functions() -> None:
    assert noisy("def f(x):\n    y = x\n    return y").count("noisy(") == 2
    assert "noisy" not in noisy("v0 = jnp.sin(1.0)")


# ---- Comparing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "want", "kind"),
    [
        (array([1.0]), array([1.0]), None),
        (array([1.0 + 1e-6]), array([1.0]), None),
        (array([1.0 + 1e-5]), array([1.0]), "value"),
        (array([np.nan]), array([np.nan]), None),
        (array([np.nan]), array([1.0]), "NaN or infinity"),
        (array([np.inf]), array([-np.inf]), "value"),
        (array([-0.0]), array([0.0]), "sign of zero"),
        (array([1], "int32"), array([2], "int32"), "value"),
        (array([1.0]), array([1.0], "float64"), "dtype"),
        (array([1.0]), array(1.0), "shape"),
        (array(1.0), array(1.0, weak=True), "weak type"),
        (array(1.0), ["error", ["TypeError"], ""], "jax raises"),
        (["error", ["TypeError"], ""], array(1.0), "we raise"),
        (["error", ["OurError", "TypeError"], ""], ["error", ["TypeError"], ""], None),
        (["error", ["ValueError"], ""], ["error", ["TypeError"], ""], "error type"),
        (["error", ["NameError"], ""], array(1.0), None),
        (["tuple", [array(1.0)]], ["tuple", []], "structure"),
        (["dict", [["'a'", array(1.0)]]], ["dict", [["'a'", array(2.0)]]], "value"),
    ],
)
def test_differences(got: Any, want: Any, kind: str | None) -> None:
    found = differences(got, want, zeros=True)
    assert (found.kind if found else None) == kind


def test_noise_explains_what_it_moves_and_no_more() -> None:
    got, want = array([1.001, 5.0]), array([1.0, 5.0])
    assert differences(got, want)
    assert not differences(got, want, [array([1.0005, 5.0])])
    assert differences(got, want, [array([1.0, 5.0005])])
    assert not differences(array([1], "int32"), array([2], "int32"), [array([3], "int32")])


# ---- Shrinking ----------------------------------------------------------------------------------


def test_float64_tells_what_was_lost() -> None:
    lost, wide = array([np.nan, 2.0]), array([0.5, 2.0], "float64")
    assert recovered(array([0.5, 2.0]), lost, wide)
    assert not recovered(array([0.0, 2.0]), lost, wide)
    assert not recovered(array([0.5, 3.0]), lost, wide)
    whole = array([1], "int32")
    got, want, exact = [["tuple", [x, whole]] for x in (array([0.5, 2.0]), lost, wide)]
    assert recovered(got, want, exact)


def test_of_two_rounded_numbers_one_is_nearer() -> None:
    want, wide = array([0.0615234375], "float16"), array([0.0706])
    assert nearer(array([0.07666015625], "float16"), want, wide)
    assert not nearer(array([0.09], "float16"), want, wide)
    assert not nearer(array([1.0], "float64"), array([2.0], "float64"), wide)
    want, wide = array([6e-8, 1.0, np.nan]), array([0.0, 1.0, np.nan], "float64")
    assert nearer(array([0.0, 1.0, np.nan]), want, wide)
    assert not nearer(array([0.0, 1.1, np.nan]), want, wide)
    assert not nearer(array([0.0, 1.0, 0.0]), want, wide)


def test_only_longer_shapes_are_those_of_an_exchange() -> None:
    text = "got ['aval', 'float32', [1, 2], True]\nwant ['aval', 'float32', [1, 2, 2], True]"
    program = "v0 = lax.all_to_all(x0, 'i', 0, 0)"
    assert meant(Difference("shape", text), program)[0]
    other = Difference("shape", "got array float32[2] [1]\nwant array float32[2, 2]")
    assert meant(other, program)[0]
    assert not meant(Difference("shape", text.replace("[1, 2, 2]", "[2, 2]")), program)[0]


def test_what_is_meant_is_gone_without_its_cause() -> None:
    difference = Difference("NaN or infinity", "got nan\nwant 0.0", "v0")
    reason, other = meant(difference, "v0 = jax.scipy.special.spence(x0) * jnp.linalg.det(x1)")
    assert reason and other == "v0 = jnp.cos(x0) * jnp.trace(x1)"
    assert meant(difference, "v0 = jnp.sin(x0)") == ("", "")


def test_a_rule_for_batches_with_an_axis_too_many() -> None:
    program = "h0 = jax.custom_batching.custom_vmap(h0_plain)"
    twice = Difference("shape", "got array float32[2, 3] [1]\nwant array float32[2, 2, 3] [1]")
    assert meant(twice, program)[1] == "h0 = without_rule(h0_plain)"
    other = Difference("shape", "got array float32[2, 3] [1]\nwant array float32[3, 2, 3] [1]")
    assert meant(other, program) == ("", "")


def test_shrinking_leaves_what_matters() -> None:
    program = statements(
        """
x0 = jnp.array([[1.0, 2.0], [3.0, 4.0]], jnp.float32)
x1 = jnp.array([5.0], jnp.float32)
v0 = jnp.cos(x1)
v1 = jnp.sum(jnp.sin(jnp.exp(x0)), axis=0)
v2 = v1 + v0
"""
    )

    def test(candidate: Sequence[Statement]) -> Difference | None:
        text = "\n".join(s.text for s in candidate)
        return Difference("value", "", "v2") if "jnp.sin(" in text and "v2 =" in text else None

    left = shrink(program, "v2", test, {}, 20)
    text = "\n".join(s.text for s in left)
    assert "jnp.sin(" in text
    assert "cos" not in text and "sum" not in text and "exp" not in text
    assert len(text) < 60


def test_a_minimal_program_is_an_expression_for_the_oracle() -> None:
    lines = statements("x0 = jnp.ones(3)\nv0 = jnp.sin(x0)")
    assert oracle_case(lines, "v0") == "jnp.sin(jnp.ones(3))"
    function = Statement("def g0(p0):\n    return p0 * 2\nv1 = jax.vmap(g0)(x0)", "v1")
    assert oracle_case([lines[0], function], "v1") == ("jax.vmap(lambda p0: p0 * 2)(jnp.ones(3))")


def test_findings_are_files(tmp_path: Path) -> None:
    lines = statements("x0 = jnp.ones(3)\nv0 = jnp.sin(x0)")
    program = Program(5, True, (lines[0],), (lines[1],), ())
    difference = Difference("dtype", "got float32\nwant float64", "v0")
    path = Findings(tmp_path).keep(Finding(program, difference, lines, False))
    text = path.read_text()
    assert "# tests/oracle: jnp.sin(jnp.ones(3)) #@ enable_x64" in text
    compile(text, str(path), "exec")
    assert cause(difference, lines[1].text) == ("dtype", "jnp.sin(")
    assert not meant(difference, "")[0] and meant(Difference("jax raises", ""), "")[0]


# ---- Coverage -----------------------------------------------------------------------------------


def test_each_rule_is_counted_once() -> None:
    counted = Counted()
    for _ in range(2):
        counted.note("sin", "jvp", [[np.float32(1)], [None]])
    counted.note("sin", "jvp", [np.int8(1)])
    assert counted.news() == [("sin", "jvp", "float"), ("sin", "jvp", "int")]
    assert not counted.news()
    matrix = Matrix()
    assert matrix.add([("sin", "jvp", "float")]) == 1 and matrix.add([("sin", "jvp", "float")]) == 0
    line = next(x for x in matrix.report().splitlines() if x.startswith("sin "))
    assert line.split() == ["sin", "-", "-", "f"] + ["-"] * 4


# ---- Processes ----------------------------------------------------------------------------------


def test_a_process_that_ends_or_hangs_is_started_again() -> None:
    worker = Worker(sys.executable, "perspex")
    fine = statements("v0 = jnp.ones(2)")
    try:
        with pytest.raises(Broken, match="SIGKILL"):
            worker.ask([Statement("import os, signal; os.kill(os.getpid(), 9)", "")], False, 60)
        with pytest.raises(Broken, match="hang"):
            worker.ask([Statement("import time; time.sleep(600)", "")], False, 0.5)
        assert worker.ask(fine, False, 60)["v0"] == array([1, 1])
    finally:
        worker.stop()


def test_two_processes_agree_but_where_they_cannot() -> None:
    pair = Pair(*[Worker(sys.executable, "perspex") for _ in range(2)])
    program = Generator(4).program(3)
    other = Statement("import os\nv90 = jnp.asarray(os.getpid())", "v90")
    try:
        for abstract in (True, False):
            found, _ = pair.difference(program.statements, program.x64, abstract=abstract)
            assert not found
        found, _ = pair.difference([other, *statements("v91 = v90 * 0")], False)
        assert [(d.name, d.kind) for d in found] == [("v90", "value")]
    finally:
        pair.stop()
