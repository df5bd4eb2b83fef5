"""Does the heat map agree with what running the lines apart measures?

    python benchmarks/heatmap.py [--rounds 200]

Programs run under the profiler of `%profile on`, and each of their lines alone, compiled by itself,
on the operands that it has there. Compared are the times that one round in ten stays below, since
other work on the machine only adds (products, which take all cores, want a machine of their own);
from a line alone goes what a call of an empty program takes.
The target is 20 % for lines of more than 5 % of a program, but for those whose time is shared out
by a guess, which are marked with ~. The last program shows where it is not met: in a line of which
XLA makes a loop of hundreds of steps of a microsecond, each of which the profiler writes down.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import perspex
import perspex.numpy as jnp
from perspex import lax
from perspex.runtime.profile import LineTime, Place, Session

MOST_OFF = 0.2
LEAST_PART = 0.05
FAST = 0.1
STEPS = 5


def _normal(*shape: int) -> Any:
    numbers = np.random.default_rng(sum(shape)).normal(size=shape) / np.sqrt(shape[-1])
    return jnp.asarray(numbers.astype(np.float32))


# Long enough for what starting a program takes to count little, short enough for rounds to find the
# machine free.
SMALL, MIDDLE, LARGE = _normal(384, 384), _normal(448, 448), _normal(640, 640)
LONG = _normal(300_000)
PRODUCT = jnp.sin(LONG) * jnp.exp(LONG)


def _repeated(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loop of one line: what it takes in the loop of the program, where it is not hoisted."""
    return lambda c: lax.scan(lambda c, _: (step(c), None), c, None, length=STEPS)[0]


LOOPED = _repeated(lambda c: jnp.tanh(c @ MIDDLE))(MIDDLE)


class Case(NamedTuple):
    """A program's text, its arguments, and of its lines, from 1, each alone with its operands."""

    text: str
    args: tuple[Any, ...]
    apart: dict[int, tuple[Callable[..., Any], tuple[Any, ...]]]


UNMET = "a loop of small steps (not judged)"
CASES = {
    "products": Case(
        """
        def program(a, b, c):
            small = a @ a
            middle = b @ b
            large = c @ c
            return small, middle, large
        """,
        (SMALL, MIDDLE, LARGE),
        {
            2: (lambda a: a @ a, (SMALL,)),
            3: (lambda b: b @ b, (MIDDLE,)),
            4: (lambda c: c @ c, (LARGE,)),
        },
    ),
    "scan": Case(
        """
        def program(c):
            def step(c, _):
                d = c @ MIDDLE
                return jnp.tanh(d), None
            c, _ = lax.scan(step, c, None, length=STEPS)
            return jnp.sort(c, axis=0)
        """,
        (MIDDLE,),
        {
            3: (_repeated(lambda c: c @ MIDDLE), (MIDDLE,)),
            4: (_repeated(jnp.tanh), (MIDDLE,)),
            6: (
                lambda c: jnp.sort(c, axis=0),
                (_repeated(lambda c: jnp.tanh(c @ MIDDLE))(MIDDLE),),
            ),
        },
    ),
    "elementwise": Case(
        """
        def program(x):
            y = jnp.sin(x) * jnp.exp(x)
            z = jnp.sort(y)
            return jnp.tanh(z) + 1
        """,
        (LONG,),
        {
            2: (lambda x: jnp.sin(x) * jnp.exp(x), (LONG,)),
            3: (jnp.sort, (PRODUCT,)),
            4: (lambda z: jnp.tanh(z) + 1, (PRODUCT,)),
        },
    ),
    UNMET: Case(
        """
        def program(c):
            d = c @ c
            return jnp.cumsum(d, axis=1)
        """,
        (LARGE,),
        {
            2: (lambda c: c @ c, (LARGE,)),
            3: (lambda c: jnp.cumsum(c, axis=1), (LARGE,)),
        },
    ),
}


def _seconds(f: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    perspex.block_until_ready(f(*args))
    return time.perf_counter() - start


def _defined(case: Case, file: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"jnp": jnp, "lax": lax, "MIDDLE": MIDDLE, "STEPS": STEPS}
    exec(compile(textwrap.dedent(case.text).strip() + "\n", file, "exec"), namespace)
    return perspex.jit(namespace["program"])


class _Row(NamedTuple):
    """Of a line: the seconds that the profiler found, those shared out, and those that it takes
    alone, in the fast rounds."""

    line: int
    seconds: float
    shared: float
    apart: float


def measure(name: str, rounds: int) -> list[_Row]:
    """What each line of a program takes in it and alone."""
    case = CASES[name]
    file = f"<{name}>"
    program = _defined(case, file)
    alone = {line: (perspex.jit(f), args) for line, (f, args) in case.apart.items()}
    empty = perspex.jit(lambda x: x[0, 0]), (SMALL,)
    for f, args in ((program, case.args), empty, *alone.values()):
        _seconds(f, args)
    rows: dict[int, list[tuple[float, float, float]]] = {line: [] for line in alone}
    for _ in range(rounds):
        with Session() as session:
            perspex.block_until_ready(program(*case.args))
        lines = session.profile().lines
        call = _seconds(*empty)
        for line, (f, args) in alone.items():
            spent = lines.get(Place(file, line), LineTime())
            rows[line].append((spent.seconds, spent.shared, _seconds(f, args) - call))
    return [_Row(line, *np.quantile(np.array(found), FAST, axis=0)) for line, found in rows.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    missed = []
    for name, case in CASES.items():
        found = measure(name, rounds)
        texts = textwrap.dedent(case.text).strip().splitlines()
        whole, whole_apart = sum(row.seconds for row in found), sum(row.apart for row in found)
        print(f"{name}\n{'in it':>12} {'part':>6}   {'alone':>10} {'part':>6}   {'off by':>7}")
        for line, seconds, shared, apart in found:
            off = seconds / apart - 1
            parts = seconds / whole, apart / whole_apart
            guessed = shared > 0.1 * seconds
            judged = max(parts) > LEAST_PART and not guessed and name != UNMET
            if judged and abs(off) > MOST_OFF:
                missed.append(f"{name}:{line}")
            print(
                f"{'~' if guessed else ' '}{seconds * 1e3:8.3f} ms {parts[0]:6.1%}"
                f"   {apart * 1e3:7.3f} ms {parts[1]:6.1%}   {off:+7.1%}"
                f"   {'' if judged else '(not judged) '}{texts[line - 1].strip()}"
            )
    if missed:
        print(f"off by more than {MOST_OFF:.0%}: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
