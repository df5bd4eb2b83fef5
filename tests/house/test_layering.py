"""The shape of the house (docs/architecture.md): imports point one way, and files stay readable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.sources import FILES
from support.sources import trees as trees_of_files

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 600
# What the core has now, so that growth is noticed: whoever adds lines says here how many it takes.
CORE_LINES = 117_100

# Each row may import the rows above it in this table, and what stands left of it in its own row.
# A name is a package of core/perspex, or a module that lies loose in it: those are public modules
# with JAX's names. Inside a package anything goes but a cycle.
LAYERS = [
    "base advice errors config dtypes tree",
    "layout sharding ir",
    "tracing",
    "hlo",
    "ops",
    "transforms",
    "runtime",
    "jitted",
    "control",
    "api",
    "rules",
    "arguments typing lax numpy random nn scipy image core dlpack flatten_util stages tree_util "
    "checkpoint_policies ad ad_checkpoint custom_batching custom_derivatives extend debug events "
    "distributed example_libraries experimental export ffi memory monitoring profiler ref "
    "test_util checkpoints",
    "as_jax",
]
RANK = {name: (i, j) for i, row in enumerate(LAYERS) for j, name in enumerate(row.split())}

# The modules that may lie loose: public ones, with JAX's names but for `checkpoints` and `events`.
LOOSE = {
    "perspex": "__init__ ad ad_checkpoint checkpoint_policies checkpoints config core "
    "custom_batching custom_derivatives debug distributed dlpack dtypes errors events extend "
    "ffi flatten_util image memory monitoring profiler ref sharding stages test_util tree "
    "tree_util typing",
    "perspex_magics": "__init__ session",
}

# What the modules of each source root may not import.
JUPYTER = {"IPython", "ipykernel", "ipywidgets", "anywidget", "jupyter_client", "jupyterlab"}
FORBIDDEN = {
    "core": {"jax", "perspex_magics", "perspex_kernel", *JUPYTER},
    "magics": {"jax", "perspex_kernel"},
    "kernel": {"jax"},
}
# Calls that import a module whose name is a string.
BY_NAME = {"import_module", "__import__", "find_spec", "resolve_name", "run_module"}
MODULE = re.compile(r"(perspex|perspex_magics|perspex_kernel)(\.\w+)*")

# Tests of several modules at once, which no module of that name stands for.
ACROSS = {
    "core/as_jax/test_signatures": "the parameters of all public functions",
    "core/as_jax/test_libraries": "the small libraries inside of JAX",
    "core/control/test_programs": "loops, branches and calls in one another",
    "core/lax/test_functions": "what all functions of `lax` have in common",
    "core/nn/test_nn": "all functions of `nn`",
    "core/numpy/test_array_api": "the array API standard",
    "core/numpy/test_manipulation": "joining, shaping and padding",
    "core/ops/test_completeness": "which rules each primitive has",
    "core/random/test_distributions": "the distributions of samples",
    "core/random/test_samples": "what all functions that draw samples have in common",
    "core/random/test_transforms": "random functions under transforms",
    "core/runtime/test_waits": "what waits for the device, and what an interrupt does then",
    "core/tracing/test_errors": "errors about traced values, under all transforms",
    "core/transforms/test_collectives": "collectives under nested `vmap`s",
    "core/transforms/test_equation_counts": "how long the programs of gradients are",
    "core/transforms/test_matrix": "all rules of all primitives, and pairs of transforms",
    "core/transforms/test_random_programs": "transforms of programs made at random",
    "magics/commands/test_transform_errors": "errors inside of `%%grad` and `%%vmap`",
    "magics/errors/test_remedies": "cells as users write them, and the remedies in their errors",
    "magics/test_docs": "docs/magics.md, run from top to bottom",
    "magics/test_extension": "loading and unloading all of it",
}


def module_name(root: str, path: Path) -> str:
    return ".".join(path.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(root, path): path for root, paths in FILES.items() for path in paths}


def imports(module: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that is imported anywhere in `tree`, with the line; also by a string."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(filter(None, [up, node.module]))
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield (name if name in MODULES else source, node.lineno)
        elif isinstance(node, ast.Call) and node.args:
            function = node.func
            called = getattr(function, "attr", None) or getattr(function, "id", None)
            for part in ast.walk(node.args[0]) if called in BY_NAME else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value, node.lineno


def texts(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every string that is the name of a module of ours, with the line."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and MODULE.fullmatch(text):
            yield text, node.lineno


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax of each module."""
    found = trees_of_files()
    return {name: found[path] for name, path in MODULES.items()}


@cache
def all_imports() -> dict[str, list[tuple[str, int]]]:
    return {name: list(imports(name, tree)) for name, tree in trees().items()}


def where(module: str, line: int) -> str:
    return f"{MODULES[module].relative_to(ROOT)}:{line}"


def test_imports_point_down() -> None:
    upward = []
    for module, found in all_imports().items():
        head, _, rest = module.partition(".")
        if head != "perspex" or not rest:
            continue
        mine = rest.partition(".")[0]
        assert mine in RANK, f"{module} has no place in the layer table"
        for target, line in found:
            # The last row stands on the finished package.
            if target == "perspex" and mine not in LAYERS[-1]:
                upward.append(f"{where(module, line)} imports the top package")
            elif target.startswith("perspex."):
                theirs = target.split(".")[1]
                if theirs != mine and RANK.get(theirs, (99, 0)) >= RANK[mine]:
                    upward.append(f"{where(module, line)} imports {target}")
    assert not upward, "\n".join(upward)


def test_roots_import_one_way() -> None:
    wrong = [
        f"{where(name, line)} names {target}"
        for root, paths in FILES.items()
        for name in (module_name(root, path) for path in paths)
        for target, line in [*all_imports()[name], *texts(trees()[name])]
        if target.partition(".")[0] in FORBIDDEN[root]
    ]
    assert not wrong, "\n".join(wrong)


def test_one_module_knows_jaxlib() -> None:
    """Every name of jaxlib's is in `base.xla`; scripts of their own import nothing of ours."""
    scripts = {"perspex.runtime.compiler.child", "perspex.runtime.processes.coordinator"}
    allowed = {"perspex.base.xla", *scripts}
    wrong = [
        f"{where(name, line)} imports {target}"
        for name, found in all_imports().items()
        for target, line in found
        if target.partition(".")[0] == "jaxlib" and name not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_no_cycle() -> None:
    graph = {
        name: {t for t, _ in found if t in MODULES and t != name}
        for name, found in all_imports().items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("root", ["perspex_magics"])
def test_rooms_have_no_cycle(root: str) -> None:
    """The packages of the magics, too: which row each is on follows from that."""
    graph: dict[str, set[str]] = {}
    for name, found in all_imports().items():
        parts = name.split(".")
        if parts[0] == root and len(parts) > 1:
            targets = {t.split(".")[1] for t, _ in found if t.startswith(f"{root}.")}
            graph.setdefault(parts[1], set()).update(targets - {parts[1]})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("cycle of packages: " + " <- ".join(error.args[1]))


def test_no_hidden_import() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    hidden = {
        f"{where(name, line)} imports {target} inside a function"
        for name, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for target, line in imports(name, function)
        # The kernel becomes JAX on request, and only then.
        if target.startswith("perspex") and target != "perspex.as_jax"
    }
    assert not hidden, "\n".join(sorted(hidden))


def test_what_lies_loose_is_public() -> None:
    for package, allowed in LOOSE.items():
        folder = MODULES[package].parent
        loose = {path.stem for path in folder.glob("*.py")} - set(allowed.split())
        assert not loose, f"{folder.relative_to(ROOT)}: {sorted(loose)} need a room"


def test_a_package_says_what_it_is_in_one_sentence() -> None:
    wrong = {}
    for name, path in MODULES.items():
        inner = len(name.split(".")) > 1 and path.name == "__init__.py"
        if inner and not is_namespace_of_users(name):
            text = ast.get_docstring(trees()[name]) or ""
            if not text.endswith(".") or "\n\n" in text or ". " in text:
                wrong[name] = text
    assert not wrong, wrong


def is_namespace_of_users(name: str) -> bool:
    """Whether a package is a module of JAX's name, whose docstring users read with `?`."""
    users = "example_libraries lax numpy random nn scipy experimental as_jax"
    return name.startswith("perspex.") and name.split(".")[1] in users.split()


def test_files_stay_readable() -> None:
    sources = [*MODULES.values(), *(ROOT / "tests").rglob("*.py")]
    panel = ROOT / "labextension" / "src"
    written = panel / "contract.ts"  # by the build, for nobody to read
    sources += [path for path in [*panel.rglob("*.ts"), *panel.rglob("*.tsx")] if path != written]
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert not long, f"over {MAX_LINES} lines: {long}"
    core = sum(len(path.read_text().splitlines()) for path in FILES["core"])
    assert core <= CORE_LINES, f"the core has {core:,} lines"


def test_a_test_stands_where_its_source_does() -> None:
    """`tests/core/x/test_y.py` is about `perspex/x/y`, `tests/magics/x/...` about the magics'."""
    lost = []
    for root, package in (("core", "core/perspex"), ("magics", "magics/perspex_magics")):
        folder = ROOT / "tests" / root
        for path in sorted(folder.rglob("test_*.py")):
            name = f"{root}/{path.relative_to(folder).with_suffix('')}"
            inside = ROOT / package / path.relative_to(folder).parent
            subject = path.stem.removeprefix("test_")
            sources = {p.stem for p in inside.glob("*.py")} | {
                p.name for p in inside.glob("*/") if p.name != "__pycache__"
            }
            about = any(subject == s or subject.startswith(f"{s}_") for s in sources)
            if not about and name not in ACROSS and inside.name != subject:
                lost.append(name)
    assert not lost, "no source of that name: " + ", ".join(lost)
    gone = [name for name in ACROSS if not (ROOT / "tests" / f"{name}.py").exists()]
    assert not gone
