"""Record the cases again, and run the recorders, under real JAX.

PYTHONPATH=tests python -m oracle PYTHON_WITH_JAX [NAME ...]
"""

from __future__ import annotations

import sys

from .cases import case_names
from .records import record, recorder_names

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    record(sys.argv[1], sys.argv[2:] or [*recorder_names(), *case_names()])
