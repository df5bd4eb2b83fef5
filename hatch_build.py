"""Puts the panel, the widgets and the examples into wheels; run by itself, it builds the first two.
It also makes the README the page of the package (`PERSPEX_LINKS`).

They are TypeScript (`labextension/`), and their bundles are not in the repository. Bundles of these
very sources are used as they are; otherwise npm makes them from the lockfile. Without Node.js,
Perspex is installed without them, or with old ones, and says so: everything else works, and widgets
show their HTML without scripts. With `PERSPEX_REQUIRE_PANEL=1` in the environment, as for a
release, that is an error.

`make panel` runs `python hatch_build.py`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT / "labextension"
BUNDLE = FOLDER / "dist"
WIDGETS = ROOT / "magics/perspex_magics/widgets/static"
# `perspex lab` opens copies of these.
EXAMPLES = ROOT / "examples"
INSTALLED = "share/jupyter/labextensions/perspex"

# What the bundles are made from; the build writes `contract.ts` from the schema, and `lesson.ts`
# from the tutorial and the logo.
SOURCES = [
    "docs/tutorial.md",
    "kernel/kernelspec/logo-svg.svg",
    "labextension/bundling",
    "labextension/package-lock.json",
    "labextension/package.json",
    "labextension/schema",
    "labextension/src",
    "labextension/style",
    "labextension/tsconfig.json",
    "magics/perspex_magics/panel/schema.json",
]
WRITTEN = [FOLDER / "src" / name for name in ("contract.ts", "lesson.ts")]
PACKAGE = ROOT / "magics/perspex_magics"


class PanelError(Exception):
    """The bundles of these sources could not be built, for the given reason."""


class PanelHook(BuildHookInterface[Any]):
    """Called by hatchling for the wheel, editable or not, and for the source distribution."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel" and EXAMPLES.exists():
            build_data["force_include"][str(EXAMPLES)] = "perspex_command/notebooks"
        try:
            built(self.app.display_info)
        except PanelError as error:
            if os.environ.get("PERSPEX_REQUIRE_PANEL") == "1":
                raise
            self.app.display_warning(f"The panel and the widgets of Perspex: {error}")
        if WIDGETS.exists():
            build_data["artifacts"].append(f"/{WIDGETS.relative_to(ROOT).as_posix()}/*.js")
        if not (BUNDLE / "package.json").exists():
            return
        stamp(self.metadata.version)
        if self.target_name == "wheel":
            build_data["shared_data"][str(BUNDLE)] = INSTALLED
        else:
            build_data["artifacts"].append("/labextension/dist/")


class ReadmeHook(MetadataHookInterface):
    """The README as the page of the package, where paths of the repository lead nowhere."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        # A source distribution has the text that was made when it was built.
        if "readme" not in metadata:
            text = (ROOT / "README.md").read_text(encoding="utf-8")
            text = absolute(text, os.environ.get("PERSPEX_LINKS", ""))
            metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, base: str) -> str:
    """Markdown whose paths follow an address, as `https://github.com/o/r/blob/v1/`, if given."""

    def led(found: re.Match[str]) -> str:
        picture, label, path, anchor = found.groups()
        return f"{picture}[{label}]({base}{path}{'?raw=true' if picture else anchor})"

    pattern = r"(!?)\[([^]]*)\]\(([^):#]+)(#[^)]*|)\)"
    return re.sub(pattern, led, text) if base else text


def built(say: Callable[[str], None]) -> None:
    """Build the bundles, unless they were made from these sources.

    Raises:
      PanelError: if they cannot be built.
    """
    _write_schema()
    made_of = BUNDLE / "sources.txt"
    now = digest()
    if made_of.exists() and made_of.read_text() == now and any(WIDGETS.glob("*.js")):
        return
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        is_old = (BUNDLE / "package.json").exists()
        left = "An older build is used." if is_old else "They are left out."
        raise PanelError(f"Node.js with npm is needed to build them and was not found. {left}")
    say("Building the panel and the widgets ...")
    for command in (["run", "build"],) if _has_modules() else (["ci"], ["run", "build"]):
        done = subprocess.run(
            [npm, *command], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            raise PanelError(f"`npm {' '.join(command)}` failed:\n{done.stdout[-4000:]}")
    say(done.stdout.strip().splitlines()[-1])
    made_of.write_text(now)


def stamp(version: str) -> None:
    """Write the version of Perspex into the bundle, whose sources name none."""
    about = BUNDLE / "package.json"
    text = about.read_text(encoding="utf-8")
    stamped = re.sub(r'("version": )"[^"]*"', rf'\1"{version}"', text, count=1)
    if stamped != text:
        about.write_text(stamped, encoding="utf-8")


def _write_schema() -> None:
    """Bring the schema of the messages up to date; where msgspec is missing, it stays as it is."""
    if (PACKAGE / "panel/schema.py").exists() and importlib.util.find_spec("msgspec") is not None:
        # As part of a package that needs nothing: Perspex may not be installed yet.
        subprocess.run([sys.executable, "-m", "panel.schema"], cwd=PACKAGE, check=True)


def _has_modules() -> bool:
    """Whether npm has installed the packages of the lockfile since the lockfile changed."""
    installed = FOLDER / "node_modules" / ".package-lock.json"
    lock = FOLDER / "package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime


def digest() -> str:
    """The digest of all sources; in an unpacked archive, times of files mean nothing."""
    found = hashlib.sha256()
    for path in sorted(_files()):
        name = path.relative_to(ROOT).as_posix()
        found.update(b"%s\0%s\0" % (name.encode(), path.read_bytes()))
    return found.hexdigest()


def _files() -> Iterator[Path]:
    for source in SOURCES:
        path = ROOT / source
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.is_file() and file not in WRITTEN:
                yield file


if __name__ == "__main__":
    try:
        built(print)
        stamp(metadata.version("perspex"))
    except PanelError as error:
        raise SystemExit(f"The panel and the widgets: {error}") from None
