"""`perspex doctor`: what is installed, what works, and what to do about the rest.

Each check gives findings: `ok`, a `note` about a part that you may not need, or `wrong`, with a
remedy. The command fails if anything is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import perspex
from perspex.runtime import plugins
from perspex.runtime.compiler import disk

OLDEST = (3, 11)
SIGNS = {"ok": "ok  ", "note": "note", "wrong": "NO  "}


@dataclass(frozen=True)
class Finding:
    """What one check says: `ok`, `note` or `wrong`; about what; and what to do about it."""

    state: str
    about: str
    says: str
    remedy: str = ""


def main(options: argparse.Namespace, others: list[str]) -> int:
    """Print the findings of all checks."""
    found = []
    for check in CHECKS:
        for finding in findings_of(check):
            found.append(finding)
            if not options.json:
                print(shown(finding), flush=True)
    wrong = sum(finding.state == "wrong" for finding in found)
    if options.json:
        print(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        print(f"\n{wrong} wrong." if wrong else "\nPerspex can be used.")
    return 1 if wrong else 0


def findings_of(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a check finds; if it fails itself, that is what is wrong."""
    try:
        return list(check())
    except Exception as error:
        about = check.__name__.replace("_", " ")
        remedy = "python -m pip install --force-reinstall perspex"
        return [Finding("wrong", about, f"{type(error).__name__}: {error}", remedy)]


def shown(finding: Finding) -> str:
    """A finding in one line, and its remedy in another."""
    line = f"{SIGNS[finding.state]}  {finding.about}: {finding.says}"
    return f"{line}\n      {finding.remedy}" if finding.remedy else line


# ---- checks -------------------------------------------------------------------------------------


def python() -> Iterator[Finding]:
    """The interpreter and the machine."""
    says = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.version_info < OLDEST:
        yield Finding("wrong", "Python", says, "Use Python 3.11 or newer.")
    else:
        yield Finding("ok", "Python", f"{says}, {os.cpu_count()} processors")


def packages() -> Iterator[Finding]:
    """Perspex and what its core needs, in the versions that it asks for."""
    installed = _version("perspex")
    if installed == perspex.__version__:
        yield Finding("ok", "perspex", installed)
    else:
        says = f"version {perspex.__version__} is imported, {installed or 'none'} is installed"
        yield Finding("wrong", "perspex", says, "python -m pip install --force-reinstall perspex")
    for line in metadata.requires("perspex") or []:
        name, wanted = _requirement(line)
        if not name:
            continue
        found = _version(name)
        if found is None or not _fits(found, wanted):
            says = f"{found or 'not installed'}; Perspex needs {wanted}"
            yield Finding("wrong", name, says, f"python -m pip install '{name}{wanted}'")
        else:
            yield Finding("ok", name, found)


def devices() -> Iterator[Finding]:
    """What computes, and whether it does."""
    with warnings.catch_warnings(record=True), contextlib.redirect_stderr(io.StringIO()) as told:
        found = perspex.devices()
        value = float(perspex.jit(lambda x: x + 1)(1.0))
    names = ", ".join(str(device) for device in found[:8])
    if value != 2.0:
        yield Finding("wrong", "devices", f"{names}: 1 + 1 gave {value}")
    else:
        yield Finding("ok", "devices", f"{names}; a compiled program ran")
    for plugin in plugins.installed():
        running = {device.platform for device in found} & {plugin.platform, "gpu"}
        state = "ok" if running else "note"
        yield Finding(state, "plugin", f"{plugin.platform} from {plugin.origin}")
    for line in told.getvalue().splitlines():
        yield Finding("note", "devices", line)
    missing = plugins.missing()
    if missing:
        yield Finding("note", "devices", missing)


def cache() -> Iterator[Finding]:
    """The folder in which the kernel keeps compiled programs."""
    place = disk.default_directory()
    if place is None:
        remedy = "Set PERSPEX_COMPILATION_CACHE_DIR to a folder."
        yield Finding("note", "cache", "this user has no home, so no program is kept", remedy)
        return
    folder = Path(place)
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        remedy = "Set PERSPEX_COMPILATION_CACHE_DIR to a folder that you can write to."
        yield Finding("wrong", "cache", f"{nearest} cannot be written to", remedy)
    elif not folder.exists():
        yield Finding("ok", "cache", f"{folder}, made by the first kernel")
    elif hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        yield Finding("wrong", "cache", f"{folder} belongs to somebody else", f"rm -r {folder}")
    elif os.name == "posix" and folder.stat().st_mode & 0o077:
        yield Finding("wrong", "cache", f"others can open {folder}", f"chmod 700 {folder}")
    else:
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        yield Finding("ok", "cache", f"{folder}, {sum(sizes) / 2**20:.3g} MiB")


def kernel() -> Iterator[Finding]:
    """The kernel, and whether Jupyter finds it and starts this Python."""
    if importlib.util.find_spec("ipykernel") is None:
        remedy = "python -m pip install 'perspex[lab]'"
        yield Finding("note", "kernel", "not installed; Perspex is a library here", remedy)
        return
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("perspex")
    except NoSuchKernel:
        remedy = "python -m pip install --force-reinstall --no-deps perspex"
        yield Finding("wrong", "kernel", "Jupyter has no kernel `perspex`", remedy)
        return
    program = spec.argv[0]
    other = program != "python" and Path(program).resolve() != Path(sys.executable).resolve()
    own = Path(spec.resource_dir).is_relative_to(sys.prefix)
    if other or not own:
        says = f"Jupyter starts the one of another environment: {spec.resource_dir}"
        yield Finding("note", "kernel", says, "Remove it, or start Jupyter from this environment.")
    else:
        yield Finding("ok", "kernel", spec.resource_dir)


def panel() -> Iterator[Finding]:
    """The panel, and whether it is of the same version."""
    if importlib.util.find_spec("jupyterlab") is None:
        remedy = "python -m pip install 'perspex[lab]'"
        yield Finding("note", "panel", "JupyterLab is not installed", remedy)
        return
    from jupyter_core.paths import jupyter_path

    places = [Path(path) / "perspex" for path in jupyter_path("labextensions")]
    found = next((path for path in places if (path / "package.json").is_file()), None)
    node = "In the repository, `make panel` builds it, with Node.js 20.19 or newer."
    if found is None:
        yield Finding("note", "panel", "not installed; the kernel works without it", node)
        return
    version = json.loads((found / "package.json").read_text(encoding="utf-8"))["version"]
    installed = _version("perspex")
    if version != installed:
        says = f"version {version} in {found}, but Perspex is {installed}"
        yield Finding("wrong", "panel", says, f"Remove {found}, and install Perspex again. {node}")
    else:
        yield Finding("ok", "panel", f"{version}, JupyterLab {_version('jupyterlab')}")


def room() -> Iterator[Finding]:
    """What else programs need: a compiler's process, and space on the disk."""
    free = shutil.disk_usage(Path.home() if Path.home().exists() else "/").free
    state = "ok" if free > 2**30 else "note"
    yield Finding(state, "disk", f"{free / 2**30:.3g} GiB free")


CHECKS: list[Callable[[], Iterator[Finding]]] = [
    python,
    packages,
    devices,
    cache,
    kernel,
    panel,
    room,
]


# ---- versions -----------------------------------------------------------------------------------


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _requirement(line: str) -> tuple[str, str]:
    """Name and versions of a requirement of the core; an extra's has no name."""
    what, _, condition = line.partition(";")
    if "extra" in condition:
        return "", ""
    what = what.strip()
    end = next((i for i, letter in enumerate(what) if letter in "<>=!~ ["), len(what))
    return what[:end], what[end:].strip()


def _fits(found: str, wanted: str) -> bool:
    """Whether a version is within bounds such as `<0.13,>=0.10.2`."""
    bounds = [(part[:2], part[2:]) if part[1:2] == "=" else (part[:1], part[1:])
              for part in wanted.replace(" ", "").split(",") if part]  # fmt: skip
    numbers = _numbers(found)
    tests = {
        ">=": lambda other: numbers >= other,
        "<": lambda other: numbers < other,
        "<=": lambda other: numbers <= other,
        ">": lambda other: numbers > other,
    }
    return all(tests[how](_numbers(bound)) for how, bound in bounds if how in tests)


def _numbers(version: str) -> tuple[int, ...]:
    parts = []
    for part in version.split("."):
        digits = "".join(letter for letter in part if letter.isdigit())
        if not digits or not part[0].isdigit():
            break
        parts.append(int(digits))
    return tuple(parts)
