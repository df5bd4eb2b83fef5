"""Record the cases again under real JAX.

PYTHONPATH=tests python -m oracle PYTHON_WITH_JAX [NAME ...]
"""

from __future__ import annotations

import sys

from .cases import case_names
from .records import record

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    record(sys.argv[1], sys.argv[2:] or case_names())
