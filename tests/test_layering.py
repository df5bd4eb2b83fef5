"""The shape of the house (docs/architecture.md): imports point one way, and files stay readable."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 800

# Each row may import the rows above it in this table, and what stands left of it in its own row.
# A name is a module or a package of core/perspex; inside a package anything goes but a cycle.
LAYERS = [
    "base advice errors config dtypes tree",
    "ir sharding",
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
    "checkpoint_policies ad_checkpoint custom_batching custom_derivatives extend debug "
    "experimental",
    "as_jax",
]
RANK = {name: (i, j) for i, row in enumerate(LAYERS) for j, name in enumerate(row.split())}

# What the modules of each source root may not import.
JUPYTER = {"IPython", "ipykernel", "ipywidgets", "anywidget", "jupyter_client", "jupyterlab"}
FORBIDDEN = {
    "core": {"jax", "perspex_magics", "perspex_kernel", *JUPYTER},
    "magics": {"jax", "perspex_kernel"},
    "kernel": {"jax"},
}
FILES = {root: sorted((ROOT / root).rglob("*.py")) for root in FORBIDDEN}


def module_name(root: str, path: Path) -> str:
    return ".".join(path.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(root, path): path for root, paths in FILES.items() for path in paths}


def imports(module: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that is imported anywhere in `tree`, with the line."""
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


TREES = {name: ast.parse(path.read_text(), str(path)) for name, path in MODULES.items()}
IMPORTS = {name: list(imports(name, tree)) for name, tree in TREES.items()}


def where(module: str, line: int) -> str:
    return f"{MODULES[module].relative_to(ROOT)}:{line}"


def test_imports_point_down() -> None:
    upward = []
    for module, found in IMPORTS.items():
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
        f"{where(name, line)} imports {target}"
        for root, paths in FILES.items()
        for name in (module_name(root, path) for path in paths)
        for target, line in IMPORTS[name]
        if target.partition(".")[0] in FORBIDDEN[root]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_cycle() -> None:
    graph = {
        name: {t for t, _ in found if t in MODULES and t != name} for name, found in IMPORTS.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))


def test_no_hidden_import() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    hidden = {
        f"{where(name, line)} imports {target} inside a function"
        for name, tree in TREES.items()
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for target, line in imports(name, function)
        if target.startswith("perspex")
    }
    assert not hidden, "\n".join(sorted(hidden))


def test_files_stay_readable() -> None:
    sources = [*MODULES.values(), *(ROOT / "tests").rglob("*.py")]
    panel = ROOT / "labextension" / "src"
    sources += [*panel.rglob("*.ts"), *panel.rglob("*.tsx")]
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert not long, f"over {MAX_LINES} lines: {long}"
