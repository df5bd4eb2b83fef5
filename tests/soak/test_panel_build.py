"""How panel and widgets get into a wheel (`hatch_build.py`), with Node.js and without it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = "magics/perspex_magics/widgets/static"
NPM = shutil.which("npm")
MODULES = ROOT / "labextension" / "node_modules"

sys.path.insert(0, str(ROOT))

import hatch_build  # noqa: E402


def copy_of_sources(to: Path) -> Path:
    """The project as somebody has it who has just cloned it."""
    for source in [
        *hatch_build.SOURCES,
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
    ]:
        path, copied = ROOT / source, to / source
        copied.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            written = (path.name for path in hatch_build.WRITTEN)
            shutil.copytree(path, copied, ignore=shutil.ignore_patterns(*written))
        else:
            shutil.copy(path, copied)
    for package in ("core/perspex", "magics/perspex_magics", "kernel/perspex_kernel"):
        (to / package).mkdir(parents=True, exist_ok=True)
        (to / package / "__init__.py").touch()
    (to / "kernel/perspex_kernel_launcher.py").touch()
    shutil.copytree(ROOT / "kernel/kernelspec", to / "kernel/kernelspec", dirs_exist_ok=True)
    return to


def wheel(project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"],
        cwd=project,
        env={"PATH": "/nowhere", **environment},
        capture_output=True,
        text=True,
    )


def names(project: Path) -> list[str]:
    (made,) = (project / "out").glob("*.whl")
    return zipfile.ZipFile(made).namelist()


def test_without_node_perspex_is_built_without_the_panel_and_says_so(tmp_path: Path) -> None:
    project = copy_of_sources(tmp_path)
    done = wheel(project)
    assert done.returncode == 0, done.stderr
    assert "Node.js" in done.stdout + done.stderr and "left out" in done.stdout + done.stderr
    assert not any("labextensions" in name or name.endswith(".js") for name in names(project))

    done = wheel(project, PERSPEX_REQUIRE_PANEL="1")
    assert done.returncode != 0 and "Node.js" in done.stderr


def test_a_bundle_of_these_sources_is_taken_as_it_is(tmp_path: Path) -> None:
    project = copy_of_sources(tmp_path)
    bundle = project / "labextension/dist"
    bundle.mkdir()
    (bundle / "package.json").write_text("{}")
    (bundle / "sources.txt").write_text(hatch_build.digest())
    (project / STATIC).mkdir(parents=True)
    (project / STATIC / "cache.js").write_text("export default {};")
    done = wheel(project, PERSPEX_REQUIRE_PANEL="1")
    assert done.returncode == 0, done.stderr
    assert any(
        name.endswith("data/share/jupyter/labextensions/perspex/package.json")
        for name in names(project)
    )
    assert "perspex_magics/widgets/static/cache.js" in names(project)

    # Another line in a source makes it an old one.
    with (project / "labextension/src/index.ts").open("a") as file:
        file.write("\n// more\n")
    assert wheel(project, PERSPEX_REQUIRE_PANEL="1").returncode != 0


@pytest.mark.skipif(NPM is None or not MODULES.exists(), reason="needs Node.js and `make panel`")
def test_the_same_sources_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    bundles = []
    for name in ("here", "elsewhere/deeper"):
        project = copy_of_sources(tmp_path / name)
        folder = project / "labextension"
        (folder / "node_modules").symlink_to(MODULES)
        subprocess.run([str(NPM), "run", "build"], cwd=folder, check=True, capture_output=True)
        made = folder / "dist"
        files = sorted(path for path in made.rglob("*") if path.is_file())
        files += sorted((project / STATIC).iterdir())
        bundles.append({path.relative_to(project).as_posix(): path.read_bytes() for path in files})
    assert bundles[0] == bundles[1]
    assert any("dist/static/remoteEntry" in name for name in bundles[0])
    widgets = {name for name in bundles[0] if name.startswith(STATIC)}
    assert widgets == {f"{STATIC}/{name}.js" for name in ("cache", "keys", "program", "timings")}


def test_the_lockfile_names_no_registry() -> None:
    lock = json.loads((ROOT / "labextension/package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    installed = [package for name, package in lock["packages"].items() if name]
    assert installed and all("integrity" in package for package in installed)
