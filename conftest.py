"""What tests and doctests have in common."""

import os
import signal

# Tests say themselves which cache they mean, whatever whoever runs them has set for other programs.
for name in list(os.environ):
    if name.startswith(("PERSPEX_", "JAX_")) and "COMPILATION_CACHE" in name:
        del os.environ[name]

# Behind `&` in a script, a shell has interrupts ignored, and so would what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["support.examples", "support.kept"]
