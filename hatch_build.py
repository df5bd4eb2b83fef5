"""Puts the panel for JupyterLab and Notebook into what is built; by itself, it builds the panel.

The panel is TypeScript (`labextension/`) and its bundle is not in the repository. One that was made
of these very sources is taken as it is. Else npm makes one, as the lockfile says. Without Node.js
Perspex is installed without the panel, or with an old one, and says so: all else works. With
`PERSPEX_REQUIRE_PANEL=1` in the environment, as for a release, that is an error.

`python hatch_build.py` is what `make panel` runs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "labextension"
BUNDLE = FOLDER / "dist"
INSTALLED = "share/jupyter/labextensions/perspex"

# All that the bundle is made of; `contract.ts` is written on the way, from the schema.
SOURCES = [
    "labextension/bundling",
    "labextension/package-lock.json",
    "labextension/package.json",
    "labextension/schema",
    "labextension/src",
    "labextension/style",
    "labextension/tsconfig.json",
    "magics/perspex_magics/panel/schema.json",
    "magics/perspex_magics/widgets/static",
]
WRITTEN = FOLDER / "src" / "contract.ts"


class PanelError(Exception):
    """There is no panel of these sources, for the reason that is given."""


class PanelHook(BuildHookInterface[Any]):
    """Called by hatchling for the wheel, editable or not, and for the source distribution."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            built(self.app.display_info)
        except PanelError as error:
            if os.environ.get("PERSPEX_REQUIRE_PANEL") == "1":
                raise
            self.app.display_warning(f"Perspex's panel for JupyterLab: {error}")
        if not (BUNDLE / "package.json").exists():
            return
        if self.target_name == "wheel":
            build_data["shared_data"][str(BUNDLE)] = INSTALLED
        else:
            build_data["artifacts"].append("/labextension/dist/")


def built(say: Callable[[str], None]) -> None:
    """Make sure that the bundle is one of these sources.

    Raises:
      PanelError: where it cannot be made.
    """
    made_of = BUNDLE / "sources.txt"
    now = digest()
    if made_of.exists() and made_of.read_text() == now:
        return
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        left = "an old one is taken" if (BUNDLE / "package.json").exists() else "it is left out"
        raise PanelError(f"building it takes Node.js with npm, which was not found; {left}")
    say("Building the panel for JupyterLab ...")
    for command in (["run", "build"],) if _has_modules() else (["ci"], ["run", "build"]):
        done = subprocess.run(
            [npm, *command], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            raise PanelError(f"`npm {' '.join(command)}` failed:\n{done.stdout[-4000:]}")
    say(done.stdout.strip().splitlines()[-1])
    made_of.write_text(now)


def _has_modules() -> bool:
    """Whether npm has installed what the lockfile says, since it was last changed."""
    installed = FOLDER / "node_modules" / ".package-lock.json"
    lock = FOLDER / "package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime


def digest() -> str:
    """The digest of all sources: times of files say nothing in an unpacked archive."""
    found = hashlib.sha256()
    for path in sorted(_files()):
        name = path.relative_to(ROOT).as_posix()
        found.update(b"%s\0%s\0" % (name.encode(), path.read_bytes()))
    return found.hexdigest()


def _files() -> Iterator[Path]:
    for source in SOURCES:
        path = ROOT / source
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.is_file() and file != WRITTEN:
                yield file


if __name__ == "__main__":
    try:
        built(print)
    except PanelError as error:
        raise SystemExit(f"The panel: {error}") from None
