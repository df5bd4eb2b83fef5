"""Look for programs that Perspex and real JAX run differently.

PYTHONPATH=core:tests python -m fuzz --jax-python PYTHON_WITH_JAX --minutes 10

What is found is written to `build/fuzz`: a file for each cause, with a minimal program and both
answers, and `report.txt`. The same seed gives the same programs for as long as the table of
functions stays the same.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

from fuzz.process import DEVICES

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run; the exit status says whether anything differed."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--jax-python", default=os.environ.get("PERSPEX_ORACLE_PYTHON"))
    parser.add_argument("--python", default=sys.executable, help="the interpreter for Perspex")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--programs", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1000)
    parser.add_argument(
        "--calls", action="store_true", help="one call of each function after another"
    )
    parser.add_argument("--optimized", action="store_true", help="with XLA's optimizations")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz")
    given = parser.parse_args()
    if not given.jax_python:
        parser.error("name an interpreter that has jax: --jax-python or PERSPEX_ORACLE_PYTHON")

    # The generator traces what it writes, also for eight devices.
    os.environ["XLA_FLAGS"] = f"{DEVICES} {os.environ.get('XLA_FLAGS', '')}"
    from fuzz.calls import Calls
    from fuzz.campaign import Campaign
    from fuzz.generator import Generator

    campaign = Campaign(
        given.python,
        given.jax_python,
        given.out,
        given.seed,
        quick=not given.optimized,
        generator=Calls if given.calls else Generator,
    )
    with contextlib.suppress(KeyboardInterrupt):
        campaign.run(60 * given.minutes, given.programs)
    print(campaign.save())
    return bool(campaign.findings.kinds or campaign.findings.broken)


if __name__ == "__main__":
    sys.exit(main())
