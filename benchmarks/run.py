"""Perspex against real `jax` on this machine: separate processes, alternating rounds, medians.

    python benchmarks/run.py [--only trace,eager] [--rounds 5] [--jax-python PATH] [--cpu 1]
    python benchmarks/run.py --against PATH_OF_ANOTHER_CHECKOUT ...

With `--against` an older state of Perspex takes the place of jax, and nothing may be more than 3 %
slower than it was.

Each round runs either library once for every group, and the next round in the other order, so
that a machine that slows down slows both. A row shows each library's median over the rounds and the
median of the rounds' ratios; one like `devices lower, 1,024: 8` has two rows of Perspex.

Without `--jax-python` an environment with `jax` is made in `build/`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment import ROOT, jax_python
from measure import FRESH_PROCESS, GROUPS, PAIRED

MEASURE = Path(__file__).with_name("measure.py")

# A ratio to jax in the same run, or microseconds of our own.
RATIO_TARGETS = {
    "import": 0.6,
    "eager x + y": 0.75,
    "eager sin(x)": 0.75,
    "eager x[0]": 0.3,
    "eager zeros": 0.3,
    "eager x.at[0].set": 0.3,
    "dispatch 1 args": 1.0,
    "dispatch 10 args": 1.0,
    "dispatch 100 args": 1.0,
    "dispatch dict of 20": 1.0,
    "devices dispatch": 1.0,
    "devices shard_map eager": 0.5,
    "devices shard_map traced": 0.5,
}
# Rows of Perspex by other rows of Perspex: how much more the first of each pair may take.
OWN_TARGETS = {
    ("devices trace, 1,024", "devices trace, 1"): 1.1,
    ("devices lower, 1,024", "devices lower, 8"): 1.2,
}
# Against an older state: every row.
NOT_SLOWER = 1.03
# The same for all rows whose names begin so.
FAMILY_TARGETS = {
    "trace grad,": 0.25,
    "trace vmap,": 0.3,
    "trace vmap of": 0.3,
    "random": 1.0,
    "equations": 1.0,
    "memory": 1.0,
    "run": 1.03,
}
MICROSECOND_TARGETS = {"trace per equation": 8.0, "lower per equation": 6.0}


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds, memory in bytes. `other` is jax, or before."""

    name: str
    perspex: float
    other: float
    ratio: float
    is_against: bool = False
    own: float | None = None

    @property
    def most(self) -> float | None:
        """The greatest ratio that meets the target, where there is one."""
        if self.own is not None:
            return self.own
        if self.is_against:
            return NOT_SLOWER
        families = [most for start, most in FAMILY_TARGETS.items() if self.name.startswith(start)]
        return RATIO_TARGETS.get(self.name, families[0] if families else None)

    @property
    def target(self) -> str:
        """The target in words, or a dash."""
        if self.most is not None:
            return f"<= {self.most:g}x"
        if self.name in MICROSECOND_TARGETS:
            return f"<= {MICROSECOND_TARGETS[self.name]:g} us"
        return "-"

    @property
    def met(self) -> bool | None:
        """Whether the target is met; `None` without a target."""
        if self.most is not None:
            return self.ratio <= self.most
        if self.name in MICROSECOND_TARGETS:
            return self.perspex * 1e6 <= MICROSECOND_TARGETS[self.name]
        return None


def command(library: str, python: str, groups: list[str], cpu: int | None) -> dict[str, Any]:
    """How to start a process that measures, as arguments of `subprocess`."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PERSPEX_PLATFORMS": "cpu"}
    # An import compiles nothing where Python may keep what it compiled the first time.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    checkout = {"perspex": ROOT, "jax": None}.get(library, Path(library))
    environment["PYTHONPATH"] = "" if checkout is None else str(checkout / "core")
    pinned = [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]
    measured = "jax" if checkout is None else "perspex"
    args = [*pinned, python, str(MEASURE), measured, *groups]
    return {"args": args, "env": environment, "stdout": subprocess.PIPE, "text": True}


def measure(library: str, python: str, groups: list[str], cpu: int | None) -> dict[str, float]:
    """Run the groups under one library.

    A group that needs a fresh process gets several, and its least times count: whatever else the
    machine does only adds time. The groups that share a process repeat within it.
    """
    fresh = [[group] for group in groups if group in FRESH_PROCESS for _ in range(3)]
    shared = [group for group in groups if group not in FRESH_PROCESS]
    rows: dict[str, float] = {}
    for batch in [*fresh, shared] if shared else fresh:
        done = subprocess.run(**command(library, python, batch, cpu), check=True)
        for name, value in json.loads(done.stdout).items():
            rows[name] = min(value, rows.get(name, value))
    return rows


def compare(pythons: dict[str, str], groups: list[str], rounds: int, cpu: int | None) -> list[Row]:
    """Measure both libraries in alternating rounds.

    Arguments:
      pythons: an interpreter for `"perspex"`, and one for `"jax"` or the path of a checkout.
      groups: names of groups in `measure.GROUPS`.
      rounds: how many rounds to count; one more runs first, to fill the disk's and Python's caches.
      cpu: pin every process to this processor, or `None`.
    """
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    for turn in range(-1, rounds):
        order = list(pythons) if turn % 2 else list(reversed(pythons))
        warming = [group for group in groups if group in FRESH_PROCESS]
        for name in order:
            if turn < 0:
                measure(name, pythons[name], warming, cpu)
            else:
                seen[name].append(measure(name, pythons[name], groups, cpu))
        if turn >= 0:
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
    rows = []
    (other,) = pythons.keys() - {"perspex"}
    for name in seen[other][0]:
        ours = [one[name] for one in seen["perspex"]]
        theirs = [one[name] for one in seen[other]]
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        middle = statistics.median
        rows.append(Row(name, middle(ours), middle(theirs), middle(ratios), other != "jax"))
    for (large, small), most in OWN_TARGETS.items():
        if large in seen[other][0]:
            ours, base = ([one[name] for one in seen["perspex"]] for name in (large, small))
            ratio = statistics.median([a / b for a, b in zip(ours, base, strict=True)])
            name = f"{large}: {small.split(', ')[1]}"
            rows.append(
                Row(name, statistics.median(ours), statistics.median(base), ratio, own=most)
            )
    return rows


def compare_pairs(pythons: dict[str, str], rounds: int, cpu: int | None) -> list[Row]:
    """The times of compiled gradients, asked of both libraries in turn.

    A row's ratio is that of the least times: whatever else the machine does only adds time.
    """
    servers = {
        name: subprocess.Popen(**command(name, python, [PAIRED], cpu), stdin=subprocess.PIPE)
        for name, python in pythons.items()
    }

    def ask(library: str, program: str) -> float:
        server = servers[library]
        server.stdin.write(program + "\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    known = {name: server.stdout.readline().split("\t") for name, server in servers.items()}
    (other,) = pythons.keys() - {"perspex"}
    rows = []
    for program in [name.strip() for name in known[other]]:
        least = dict.fromkeys(servers, math.inf)
        for turn in range(4 * rounds):
            for library in list(servers) if turn % 2 else list(reversed(servers)):
                least[library] = min(least[library], ask(library, program))
        ours, theirs = least["perspex"], least[other]
        row = Row(f"{PAIRED} {program}", ours, theirs, ours / theirs, other != "jax")
        rows.append(row)
    for server in servers.values():
        server.stdin.close()
        server.wait()
    return rows


def seconds(value: float) -> str:
    """A duration with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def shown(name: str, value: float) -> str:
    """The value of a row, in the unit that its name implies."""
    if name.startswith("equations"):
        return f"{value:g}"
    if name.startswith("memory"):
        return f"{value / 1024:.1f} KiB"
    return seconds(value)


def table(rows: list[Row]) -> str:
    """The rows as text in columns."""
    verdict = {True: "met", False: "MISSED", None: ""}
    other = "before" if rows and rows[0].is_against else "jax"
    lines = [("", "Perspex", other, "ratio", "target", "")]
    for row in rows:
        numbers = (shown(row.name, row.perspex), shown(row.name, row.other), f"{row.ratio:.2f}")
        lines.append((row.name, *numbers, row.target, verdict[row.met]))
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def versions(python: str) -> str:
    """The versions of Python, jaxlib and NumPy that an interpreter has."""
    program = (
        "import platform; from importlib.metadata import version as v;"
        "print(f\"Python {platform.python_version()}, jaxlib {v('jaxlib')}, NumPy {v('numpy')}\")"
    )
    return subprocess.run(
        [python, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; the exit status is 0 also when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help=f"groups, separated by commas: {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="interpreter that runs Perspex")
    parser.add_argument("--jax-python", help="interpreter of an environment that has jax")
    parser.add_argument("--against", type=Path, help="an older checkout, in place of jax")
    parser.add_argument("--cpu", type=int, help="pin every process to this processor")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json")
    options = parser.parse_args(arguments)
    known = [*GROUPS, PAIRED]
    groups = options.only.split(",") if options.only else known
    unknown = sorted(set(groups) - set(known))
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(known)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if options.against is not None:
        other, python = str(options.against.resolve()), options.python
    else:
        other, python = "jax", options.jax_python or jax_python()
    pythons = {"perspex": options.python, other: python}
    told = {name: versions(python) for name, python in pythons.items()}
    alone = [group for group in groups if group != PAIRED]
    rows = compare(pythons, alone, options.rounds, options.cpu) if alone else []
    if PAIRED in groups:
        rows += compare_pairs(pythons, options.rounds, options.cpu)
    for name, text in told.items():
        print(f"{name}: {text}")
    print(f"{platform.machine()}, {os.cpu_count()} processors, {options.rounds} rounds\n")
    print(table(rows))
    counted = [row.met for row in rows if row.met is not None]
    print(f"\n{sum(counted)} of {len(counted)} targets met")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "versions": told,
        "rounds": options.rounds,
        "rows": [vars(row) | {"target": row.target, "met": row.met} for row in rows],
    }
    options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
