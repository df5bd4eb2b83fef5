"""What the environment asks for, and what becomes of a value that cannot be used.

`PERSPEX_BAD_VALUES` decides: by default a bad value raises `ValueError`, at import for a flag and
at first use for `XLA_FLAGS`, which would otherwise end the process. With `default`, which is what
the kernel sets, the default counts and `problems` has a text to show.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

# What was left out, a sentence each.
problems: list[str] = []

# Flags that every jaxlib knows need no trial.
_HARMLESS = r"--xla_force_host_platform_device_count=[1-9]\d{0,3}"
_UNKNOWN = r"Unknown flags? in XLA_FLAGS: (.*)"
_BAD_VALUE = r"Couldn't interpret value .* for flag (\w+)"
_TRIAL = "from jaxlib import xla_client; xla_client.CompileOptions()"
# A trial that ends otherwise than in XLA's parser says nothing of the flags.
_PARSER = "parse_flags_from_env"
_TRIAL_SECONDS = 30

# The value of `XLA_FLAGS` that was tried last.
_tried: str | None = None


def is_lenient() -> bool:
    """Whether a bad value only means that the default counts."""
    return os.environ.get("PERSPEX_BAD_VALUES", "").strip().lower() == "default"


def value(name: str, default: Any, check: Callable[[Any], Any]) -> Any:
    """The value of a setting: `PERSPEX_NAME`, else `JAX_NAME`, else the default.

    A value that `check` refuses is noted, and the default counts. An empty one counts as none.
    """
    for variable in (f"PERSPEX_{name}", f"JAX_{name}"):
        raw = os.environ.get(variable)
        if raw:
            try:
                return check(raw)
            except (ValueError, TypeError) as error:
                problems.append(
                    f"the environment variable {variable} has the bad value {raw!r}: {error}. "
                    f"Correct or unset it; the default is {default!r}."
                )
            return default
    return default


def settle() -> None:
    """Raise `ValueError` for the bad values that were found, unless the defaults are to count."""
    if problems and not is_lenient():
        found = "\n".join(problems)
        problems.clear()
        raise ValueError(
            f"{found}\nWith PERSPEX_BAD_VALUES=default Perspex starts with the defaults instead."
        )


def check_xla_flags() -> str:
    """Take what this jaxlib refuses out of `XLA_FLAGS`; returns what to say of it, or nothing.

    XLA reads the variable once, and ends the process if it does not know a flag. So another process
    reads it first, unless all is harmless: 0.15 s.

    Raises:
      ValueError: for a flag that is refused, unless defaults are to count.
    """
    global _tried
    given = os.environ.get("XLA_FLAGS", "")
    if given == _tried:
        return ""
    flags = given.split()
    if not all([re.fullmatch(_HARMLESS, flag) for flag in flags]):
        kept, dropped = _sorted_out(flags)
        if dropped:
            said = (
                f"jaxlib does not take {', '.join(dropped)}, from the environment variable "
                "XLA_FLAGS"
            )
            if not is_lenient():
                raise ValueError(
                    f"{said}: a flag that it does not know, or a value that the flag cannot have. "
                    "Correct or unset it; XLA would end the process."
                )
            os.environ["XLA_FLAGS"] = _tried = " ".join(kept)
            problems.append(f"{said}; Perspex left it out.")
            return problems[-1]
    _tried = given
    return ""


def _sorted_out(flags: list[str]) -> tuple[list[str], list[str]]:
    """The flags that XLA takes, and those that it does not."""
    kept, dropped = flags, []
    while kept:
        told = _trial(" ".join(kept))
        if told is None:
            break
        unknown, bad = re.search(_UNKNOWN, told), re.search(_BAD_VALUE, told)
        if unknown:
            bad_ones = set(unknown[1].split())
        elif bad:
            bad_ones = {flag for flag in kept if flag.partition("=")[0] == f"--{bad[1]}"}
        else:
            bad_ones = set(kept)
        refused = [flag for flag in kept if flag in bad_ones] or kept
        dropped += refused
        kept = [flag for flag in kept if flag not in refused]
    return kept, [flag for flag in flags if flag in dropped]


def _trial(flags: str) -> str | None:
    """What XLA says as it refuses these flags; `None` if it takes them."""
    folders = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-S", "-W", "ignore", "-c", _TRIAL],
            env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": folders},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_TRIAL_SECONDS,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    told = done.stderr.decode(errors="replace")
    return told if done.returncode and _PARSER in told else None
