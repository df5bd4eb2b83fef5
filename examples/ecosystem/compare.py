"""Run the examples on Perspex and on jax, each in a process of its own, and compare.

    python examples/ecosystem/compare.py [--rounds 3] [--jax PYTHON] [--perspex PYTHON] [NAME ...]
    python examples/ecosystem/compare.py --record          ask jax alone; keep its figures
    python examples/ecosystem/compare.py --recorded        ask our kernel alone; compare with those

An example is a notebook whose last cell names `figures`, or a program that prints them as JSON.
They must be equal within 2 %, or 0.02, as loops of training amplify the last digit; a sampler says
another tolerance. Times are those of whole processes, without programs kept on disk: the two take
turns, and the fastest round counts. The processor's time, of all threads, depends less on what else
the machine does than the time on the wall.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORDED = HERE / "recorded.json"
RESULTS = ROOT / "build" / "ecosystem.json"
PROGRAMS = ("compare", "suites")
CLOCKS = ("wall", "cpu")

# What a notebook is followed by, as its figures are objects and not text.
_SHOW = """

import json
import numpy
print(json.dumps(figures, default=lambda x: numpy.asarray(x).tolist()))
"""


class Run(NamedTuple):
    """What a process printed, or how it failed, and the seconds that it took."""

    figures: Any
    wall: float
    cpu: float
    error: str


def program(path: Path, folder: Path) -> Path:
    """An example as a program: a notebook's cells of code, one after the other."""
    if path.suffix == ".py":
        return path
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    written = folder / f"{path.stem}.py"
    written.write_text("\n\n".join(code) + _SHOW)
    return written


def run(command: list[str], env: dict[str, str]) -> Run:
    """Run a program to its end, with the figures that its last line holds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=env)
        _, status, used = os.wait4(process.pid, 0)
        wall, cpu = time.perf_counter() - start, used.ru_utime + used.ru_stime
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        lines = out.read().strip().splitlines()
        if process.returncode or not lines:
            said = err.read().strip() or f"exit status {process.returncode}"
            return Run(None, wall, cpu, said[-1500:])
        return Run(json.loads(lines[-1]), wall, cpu, "")


def differences(a: Any, b: Any, tolerance: float, path: str = "") -> list[tuple[str, Any, Any]]:
    """The places at which two figures differ, with both."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = sorted(a.keys() | b.keys())
        return [d for k in keys for d in differences(a.get(k), b.get(k), tolerance, f"{path}/{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = enumerate(zip(a, b, strict=True))
        return [d for i, (x, y) in pairs for d in differences(x, y, tolerance, f"{path}[{i}]")]
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        same = math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (a != a and b != b)
        return [] if same else [(path, a, b)]
    return [] if a == b else [(path, a, b)]


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


class Example:
    """An example, and what both sides did with it."""

    def __init__(self, path: Path, given: argparse.Namespace, folder: Path) -> None:
        script = str(program(path, folder))
        self.name = path.stem
        self.path = path
        self.rounds = given.rounds
        self.commands = {
            "jax": [given.jax, script],
            "perspex": [given.perspex, "-m", "perspex.as_jax", script],
        }
        self.runs: dict[str, list[Run]] = {"jax": [], "perspex": []}

    def ask(self, *sides: str) -> str:
        """Run the sides in turns; returns the error of the first that fails."""
        for index in range(self.rounds):
            for side in sides if index % 2 == 0 else sides[::-1]:
                env = environment(alone=side == "jax")
                self.runs[side].append(run(self.commands[side], env))
                if error := self.runs[side][-1].error:
                    return f"{side} fails:\n{error}"
        return ""

    def best(self, side: str, time: str) -> float:
        """The seconds of the fastest round."""
        return min(getattr(one, time) for one in self.runs[side])


def environment(alone: bool) -> dict[str, str]:
    """The environment of a program: no window for plots, and no programs of XLA kept on disk.

    Those of Python are kept, as pip has translated the modules of libraries, but not ours.
    """
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_COMPILATION_CACHE_DIR")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    if alone:
        kept.pop("PYTHONPATH", None)
    return kept | {"MPLBACKEND": "Agg"}


def verdict(wanted: Any, found: Any) -> str:
    """Whether figures agree, with the first three that do not."""
    apart = differences(wanted, found, wanted.get("tolerance", 0.02))
    return f"DIFFERS {apart[:3]}" if apart else "equal"


def compare(examples: list[Example]) -> bool:
    """Run both sides and print a table; returns whether all figures agree."""
    print(f"{'seconds, and ours over theirs:':30}{'wall':>8}{'jax':>8}{'':8}{'cpu':>8}{'jax':>8}")
    rows: dict[str, Any] = {}
    for example in examples:
        if error := example.ask("jax", "perspex"):
            print(f"{example.name:22}{error}", flush=True)
            continue
        said = verdict(example.runs["jax"][0].figures, example.runs["perspex"][0].figures)
        row, text = {"figures": said}, f"{example.name:30}"
        for clock in CLOCKS:
            ours, theirs = example.best("perspex", clock), example.best("jax", clock)
            row[clock] = {"perspex": ours, "jax": theirs, "ratio": ours / theirs}
            text += f"{ours:8.2f}{theirs:8.2f}{ours / theirs:8.2f}"
        rows[example.name] = row
        print(f"{text}  {said}", flush=True)
    if rows:
        means = [mean([row[clock]["ratio"] for row in rows.values()]) for clock in CLOCKS]
        print(f"{'geometric mean':46}{means[0]:8.2f}{'':16}{means[1]:8.2f}")
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    return sum(row["figures"] == "equal" for row in rows.values()) == len(examples)


def record(examples: list[Example]) -> bool:
    """Ask jax alone, and keep its figures; returns whether all examples ran."""
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"figures": {}}
    for example in examples:
        if error := example.ask("jax"):
            print(example.name, error)
            return False
        kept["figures"][example.name] = example.runs["jax"][0].figures
        print(example.name, "recorded")
    kept["from"] = f"jax {version('jax')}, Python {platform.python_version()}"
    RECORDED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return True


def in_kernel(path: Path) -> Any:
    """The figures of a notebook that the Perspex kernel runs, with its plots."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(_SHOW))
    where = {"metadata": {"path": str(path.parent)}}
    quiet = ["--log-level=ERROR"]
    NotebookClient(
        notebook, kernel_name="perspex", timeout=600, extra_arguments=quiet, resources=where
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown), "no plot was shown"
    printed = "".join(o.text for o in notebook.cells[-1].outputs if o.output_type == "stream")
    return json.loads(printed.splitlines()[-1])


def check(examples: list[Example]) -> bool:
    """Run notebooks in the Perspex kernel; returns whether all figures are those that jax had."""
    kept, well = json.loads(RECORDED.read_text()), True
    print("figures recorded with", kept["from"])
    for example in examples:
        start = time.perf_counter()
        said = verdict(kept["figures"][example.name], in_kernel(example.path))
        print(f"{example.name:22}{time.perf_counter() - start:8.1f} s  {said}", flush=True)
        well = well and said == "equal"
    return well


def main() -> None:
    """The command line; exits with 1 unless everything agrees."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--jax", default=sys.executable, help="a Python with jax")
    parser.add_argument("--perspex", default=sys.executable, help="one with Perspex")
    parser.add_argument("--rounds", type=int, default=1, help="how often each runs")
    parser.add_argument("--record", action="store_true", help="keep the figures of jax")
    parser.add_argument("--recorded", action="store_true", help="compare with the figures kept")
    parser.add_argument("names", nargs="*", help="examples; all without names")
    given = parser.parse_args()
    paths = {p.stem: p for p in HERE.iterdir() if p.suffix in (".py", ".ipynb")}
    names = given.names or sorted(paths.keys() - {*PROGRAMS})
    with tempfile.TemporaryDirectory() as folder:
        examples = [Example(paths[name], given, Path(folder)) for name in names]
        act = record if given.record else check if given.recorded else compare
        raise SystemExit(0 if act(examples) else 1)


if __name__ == "__main__":
    main()
