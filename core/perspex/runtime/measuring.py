"""Whether a session of `runtime.profile` measures the calls of this thread, and which one does.

That module is slow to import, and few programs need it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from perspex import config

here = threading.local()
"""Its `session` is the one that measures this thread, where there is one."""


def is_on() -> bool:
    """Whether this thread is measuring."""
    return bool(config.profiling.value)


def measured(executable: Any, run: Callable[[Any], Any], args: Any) -> Any:
    """What `run(args)` gives, measured as a run of that executable."""
    return here.session.call(executable, run, args)
