"""What a wheel holds: the packages, the launcher and the kernelspec, and nothing else."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from support.sources import FILES, trees

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this working copy."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def version_of(wheel: zipfile.ZipFile) -> str:
    return Path(str(wheel.filename)).name.split("-")[1]


def test_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    version = version_of(wheel)
    assert tops == {
        "perspex",
        "perspex_command",
        "perspex_magics",
        "perspex_kernel",
        "perspex_kernel_launcher.py",
        f"perspex-{version}.data",
        f"perspex-{version}.dist-info",
    }
    packaged = {name for name in wheel.namelist() if name.startswith("perspex/")}
    sources = (ROOT / "core" / "perspex").rglob("*.py")
    assert {path.relative_to(ROOT / "core").as_posix() for path in sources} <= packaged


def test_checkers_find_the_types(wheel: zipfile.ZipFile) -> None:
    marked = {name.split("/")[0] for name in wheel.namelist() if name.endswith("/py.typed")}
    assert marked == {"perspex", "perspex_command", "perspex_magics", "perspex_kernel"}


def test_kernelspec(wheel: zipfile.ZipFile) -> None:
    folder = f"perspex-{version_of(wheel)}.data/data/share/jupyter/kernels/perspex/"
    found = {name.removeprefix(folder) for name in wheel.namelist() if name.startswith(folder)}
    assert found == {"kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"}
    spec = json.loads(wheel.read(folder + "kernel.json"))
    assert spec["display_name"] == "Perspex" and spec["metadata"]["debugger"] is True
    assert spec["argv"][:4] == ["python", "-P", "-m", "perspex_kernel_launcher"]


def metadata_of(wheel: zipfile.ZipFile) -> str:
    return wheel.read(f"perspex-{version_of(wheel)}.dist-info/METADATA").decode()


def test_the_panel_has_the_version_of_the_wheel(wheel: zipfile.ZipFile) -> None:
    metadata = metadata_of(wheel)
    assert f"\nVersion: {version_of(wheel)}\n" in metadata
    panels = [name for name in wheel.namelist() if name.endswith("perspex/package.json")]
    assert {json.loads(wheel.read(name))["version"] for name in panels} <= {version_of(wheel)}
    assert "Requires-Dist: jax;" not in metadata and "\nRequires-Dist: jaxlib" in metadata


def test_the_examples_are_in_it(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    notebooks = {path.name for path in (ROOT / "examples").glob("*.ipynb")}
    assert {f"perspex_command/notebooks/{name}" for name in notebooks} <= names
    assert "perspex_command/notebooks/data/mauna_loa_co2.csv" in names


def test_the_settings_of_perspex_lab_are_in_it(wheel: zipfile.ZipFile) -> None:
    name = "perspex_command/jupyter/labconfig/default_setting_overrides.json"
    assert "fetchNews" in wheel.read(name).decode()


def test_a_script_pulls_no_jupyter(wheel: zipfile.ZipFile) -> None:
    """What the core needs, and nothing else, is installed without extras."""
    metadata = metadata_of(wheel)
    lines = re.findall(r"^Requires-Dist: ([\w.-]+)[^;\n]*(;.*)?$", metadata, re.MULTILINE)
    always = {name.replace("_", "-") for name, condition in lines if "extra ==" not in condition}
    assert always == {"jaxlib", "ml-dtypes", "numpy", "opt-einsum"}


# The packages of modules with another name.
PACKAGES = {"zmq": "pyzmq"}


def test_what_is_imported_is_declared() -> None:
    """Packages that a module imports when it is imported are those of its extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {_name(line) for line in project["dependencies"]}
    notebook = core | {_name(line) for line in project["optional-dependencies"]["notebook"]}
    optional = {"scipy", "ipyparallel", "jupyterlab", "jupyter-core"}
    for folder, declared in (("core", core), ("magics", notebook), ("kernel", notebook)):
        for path in FILES[folder]:
            tree = trees()[path]
            found = {
                PACKAGES.get(top, top)
                for node in ast.walk(tree)
                for name in _imported(node)
                for top in [name.partition(".")[0].lower().replace("_", "-")]
            }
            outside = {
                name
                for name in found
                if name.replace("-", "_") not in sys.stdlib_module_names
                and not name.startswith(("perspex", "jax"))
            }
            assert outside <= declared | optional, (path, outside - declared)


def test_the_recipe_of_conda_needs_what_the_wheel_needs() -> None:
    """It is `perspex[lab]`, under the names that conda-forge has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["notebook"], *extras["lab"]]
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    host, run = re.split(r"^  run:$", recipe.split("  host:")[1].split("\ntest:")[0], flags=re.M)
    assert _needs(run) == {
        *(line.replace("matplotlib>", "matplotlib-base>") for line in wanted if "[" not in line),
        f"python{project['project']['requires-python']}",
    }
    assert _needs(host) == {*project["build-system"]["requires"], "pip", "python>=3.11"}


def _needs(part: str) -> set[str]:
    return {line.replace(" ", "") for line in re.findall(r"^ *- (.*)$", part, re.MULTILINE)}


def test_extras_that_are_named_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    pages = [ROOT / "README.md", ROOT / "Makefile", *(ROOT / "docs").rglob("*.md")]
    pages += [ROOT / "Dockerfile", *(ROOT / ".github/workflows").glob("*.yml")]
    pattern = r"(?:perspex|\.whl\)|\"\.)\[([\w,]+)\]"
    named = [
        (page.name, extra)
        for page in pages
        for found in re.findall(pattern, page.read_text(encoding="utf-8"))
        for extra in found.split(",")
    ]
    assert {page for page, _ in named} >= {"README.md", "Makefile", "Dockerfile", "release.yml"}
    assert [(page, extra) for page, extra in named if extra not in extras] == []


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [node.module or ""]
    return []


def _name(line: str) -> str:
    return re.match(r"[\w-]+", line)[0].lower().replace("_", "-")
