"""How many equations JAX's gradients have, of the programs that the benchmarks time.

Dead code is removed and calls are opened, as `measure_equations` in `benchmarks/measure.py` does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def record() -> dict[str, Any]:
    """The number of equations by the name of the program."""
    sys.path.insert(0, str(BENCHMARKS))
    from measure import measure_equations

    rows = measure_equations("jax")
    return {name.removeprefix("equations "): count for name, count in rows.items()}
