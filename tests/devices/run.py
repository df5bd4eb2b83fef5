"""Run the tests of the device with one command, also on a bare machine, and write a report.

    python tests/devices/run.py [--platform cuda] [--report build/gpu-test.md] [-- PYTEST ARGUMENTS]
    python tests/devices/run.py --pack 3.12     # beforehand, for a machine without a network

Any Python will do that has jaxlib or can install it. What is missing is installed where pip reaches
an index, beside nothing else, into `build/device-packages`; what stays missing is said.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "device-packages"
SOURCES = [ROOT / part for part in ("core", "magics", "kernel", "tests")]
# What the notebook needs, and the core: pyproject.toml says so.
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def modules_of(requirements: list[str]) -> dict[str, str]:
    """The requirements by the module that each brings."""
    found = {}
    for one in requirements:
        name = re.split(r"[^\w-]", one, maxsplit=1)[0].replace("-", "_")
        found["IPython" if name == "ipython" else name] = one
    return found


# Without the first, nothing runs; without the others, the tests that need them are skipped.
NEEDED = modules_of([*PROJECT["dependencies"], "pytest>=8.3", "pytest-timeout"])
WANTED = modules_of(PROJECT["optional-dependencies"]["notebook"])
# Seconds that pip may take before the machine counts as one without a network.
_PATIENCE = 120


def missing(modules: dict[str, str]) -> list[str]:
    """The packages of those modules that are not there."""
    return [name for module, name in modules.items() if importlib.util.find_spec(module) is None]


def has_nvidia() -> bool:
    """Whether this machine has a GPU of NVIDIA's."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/proc/driver/nvidia/version")


def has_plugin() -> bool:
    """Whether a plugin of JAX's is installed."""
    return importlib.util.find_spec("jax_plugins") is not None


def plugin() -> str:
    """The package with the plugin for the GPU that is there, unless it is installed; or nothing."""
    if not has_nvidia() or has_plugin():
        return ""
    return "jax-cuda13-plugin[with-cuda]>=0.10.2,<0.13"


def install(packages: list[str], options: list[str]) -> bool:
    """Install packages into the folder of this script; returns whether that went well."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--retries", "0", "--timeout", "10", "--target", str(PACKAGES), *options]
    try:
        return subprocess.run([*command, *packages], timeout=_PATIENCE).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status, 2 where something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--platform", help="fail unless this is the platform that computes")
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "gpu-test.md")
    parser.add_argument("--pack", metavar="VERSION", help="fetch packages for that Python, only")
    parser.add_argument("--offline", action="store_true", help="install nothing")
    parser.add_argument("rest", nargs="*", help="arguments for pytest")
    options = parser.parse_args(arguments)
    if options.pack:
        wanted = [p for p in (NEEDED | WANTED).values() if not p.startswith(("jaxlib", "numpy"))]
        only = ["--python-version", options.pack, "--only-binary", ":all:"]
        done = install(wanted, only)
        print(f"{PACKAGES} is ready" if done else "pip could not fetch the packages")
        return 0 if done else 2
    sys.path.append(str(PACKAGES))
    lacking = [*missing(NEEDED | WANTED), *filter(None, [plugin()])]
    if lacking and not options.offline:
        print(f"installing {', '.join(lacking)} into {PACKAGES}", flush=True)
        install(lacking, [])
        importlib.invalidate_caches()
    for name in missing(WANTED):
        print(f"{name} is missing, and tests that need it are skipped")
    if name := plugin():
        print(f"this machine has a GPU of NVIDIA's, and {name} is missing: testing the processor")
    if lacking := missing(NEEDED):
        print(f"nothing can be tested without {', '.join(lacking)}", file=sys.stderr)
        return 2
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Run pytest in a process of its own, which computes on the platform that is wanted."""
    report = options.report.resolve()
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    path = [*map(str, SOURCES), str(PACKAGES)]
    environment = dict(os.environ, PERSPEX_DEVICE_REPORT=str(report))
    environment["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), *path])
    # Kernels and child processes need some of the memory, too.
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if options.platform:
        environment["PERSPEX_PLATFORMS"] = options.platform
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5"]
    chosen = options.rest if any("::" in one or ".py" in one for one in options.rest) else None
    folder = [] if chosen else [str(Path(__file__).parent)]
    status = subprocess.run(
        [*command, *folder, *options.rest], cwd=ROOT, env=environment
    ).returncode
    if report.exists():
        print(report.read_text(encoding="utf-8"))
        print(f"written to {report}")
    return status


if __name__ == "__main__":
    sys.exit(main())
