"""Every block of code in the documentation is run, or is listed here with the reason why not.

Blocks of `python` are cells or doctests, those of `sh` are commands. A command that needs files
finds them in its folder: a notebook, the same as Markdown, and two scripts.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from support import kept

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
SOURCES = [*(ROOT / "core").rglob("*.py")]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Pages whose blocks are cells of one notebook, and what runs them.
CELLS = {
    **dict.fromkeys(["magics.md", "tutorial.md"], "tests/magics/test_docs.py"),
    **dict.fromkeys((page.name for page in DOCS.glob("howto/*.md")), "tests/magics/test_docs.py"),
    "keys.md": "tests/magics/keys/test_keys.py",
    "README.md": "test_the_first_notebook",
}
# `py` is Python that is not run: it needs packages of others, or several processes.
NOT_RUN = {
    "restart-and-keep.md": "another process: tests/kernel/test_restarting.py runs such cells",
    "magics.md": "processes: tests/kernel/test_cluster.py runs such cells",
    "scale.md": "processes: tests/soak/test_processes.py joins them so",
    "use-another-editor.md": "installs from the network, in a kernel of somebody else",
    "use-jax-libraries.md": "NumPyro: make libraries runs it in the kernel",
    "use-several-processes.md": "processes: tests/kernel/test_cluster.py runs such cells",
}
# Commands that cannot end here, by how they begin.
NOT_STARTED = {
    "make ": "installs from the network; this is one of the tests that it runs",
    "perspex lab": "stays open; npm run hour walks it, tests/kernel/test_command.py its arguments",
    "pip install": "installs from the network; tests/soak/test_install.py does",
    "voila": "stays open, and is in another environment: tests/soak/test_fronts.py",
}


def blocks() -> Iterator[tuple[Path, str, str]]:
    for page in PAGES:
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            yield page, kind, text


def commands() -> list[str]:
    """The commands of all pages, without comments, each once."""
    found = [
        part.strip()
        for _, kind, text in blocks()
        if kind == "sh"
        for line in text.splitlines()
        for part in line.partition("#")[0].split("&&")
    ]
    return sorted({command for command in found if command})


def is_started(command: str) -> bool:
    return not command.startswith(tuple(NOT_STARTED))


def test_what_is_not_run_is_there() -> None:
    """A reason whose block is gone goes, too."""
    assert {page.name for page, kind, _ in blocks() if kind == "py"} == set(NOT_RUN)
    for begins in NOT_STARTED:
        assert any(command.startswith(begins) for command in commands()), begins


def test_every_block_of_python_is_a_cell_a_doctest_or_an_excerpt() -> None:
    """An excerpt stands in the sources, with annotations that a reader need not see."""
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    plain = "".join(re.sub(r": Any|-> Any", "", sources).split())
    missing = [
        f"{page.name}: {text}"
        for page, kind, text in blocks()
        if kind == "python" and ">>>" not in text and page.name not in CELLS
        if "".join(text.split()) not in plain
    ]
    assert missing == []


def test_the_first_notebook() -> None:
    """The cells of README.md, which import Perspex as jax: that only its kernel does."""
    cells = [
        nbformat.v4.new_code_cell(text)
        for page, kind, text in blocks()
        if page.name == "README.md" and kind == "python" and ">>>" not in text
    ]
    assert len(cells) > 2
    cells.append(nbformat.v4.new_code_cell("[round(float(c)) for c in coefficients]"))
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="perspex", extra_arguments=["--log-level=ERROR"]).execute(
        env={**os.environ, **kept.environment()}
    )
    # The data are a sine with noise; the fit finds no cosine in them.
    assert cells[-1].outputs[0].data["text/plain"] == "[1, 0]"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands name, and their programs on the path."""
    folder = tmp_path_factory.mktemp("user")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("rate = 0.5", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell("import jax.numpy as jnp"),
            nbformat.v4.new_code_cell("%%jit\njnp.arange(3.0) * rate"),
        ],
        metadata={
            "kernelspec": {"name": "perspex", "display_name": "Perspex", "language": "python"}
        },
    )
    nbformat.write(notebook, folder / "analysis.ipynb")
    jupytext.write(notebook, folder / "analysis.md")
    script = "import jax\nprint('the gradient is', jax.grad(lambda x: x**2)(3.0))\n"
    for name in ("script.py", "program.py"):
        (folder / name).write_text(script)
    return folder


SAYS = {
    "jupyter console": "42",
    "jupyter kernelspec list": "perspex",
    "jupyter labextension list": "JupyterLab v",
    "jupyter nbconvert": "analysis.html",
    "jupytext": "",
    "papermill": "Executing notebook with kernel: perspex",
    "perspex doctor": "Perspex can be used.",
    "perspex run": "in all; written to analysis.html",
    "python -m perspex.as_jax": "the gradient is 6.0",
}
LEAVES = {
    "jupyter nbconvert": ("analysis.html", "0.5"),
    "papermill": ("out.ipynb", "0.2"),
    "perspex run": ("analysis.html", "0.5"),
}


@pytest.mark.parametrize("command", [one for one in commands() if is_started(one)])
def test_a_command_does_what_it_says(command: str, place: Path) -> None:
    program, *words = shlex.split(command)
    programs = Path(sys.executable).parent
    found = shutil.which(program, path=str(programs)) or str(programs / program)
    (says,) = (said for begins, said in SAYS.items() if command.startswith(begins))
    done = subprocess.run(
        [sys.executable if program == "python" else found, *words],
        cwd=place,
        env={**os.environ, **kept.environment(), "PATH": f"{programs}:{os.environ['PATH']}"},
        # What somebody types in a console.
        input="import perspex\nprint(6 * 7)\nexit()\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout + done.stderr
    for begins, (name, holds) in LEAVES.items():
        if command.startswith(begins):
            assert holds in (place / name).read_text(encoding="utf-8")
