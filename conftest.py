"""What tests and doctests have in common."""

import os

# Tests say themselves which cache they mean, whatever whoever runs them has set for other programs.
for name in list(os.environ):
    if name.startswith(("PERSPEX_", "JAX_")) and "COMPILATION_CACHE" in name:
        del os.environ[name]

pytest_plugins = ["support.examples", "support.kept"]
