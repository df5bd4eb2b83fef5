"""`make demo` in a fresh clone does all the set-up, and tells whoever waits that it is at work.

It fetches all packages, so it runs where `PERSPEX_SOAK=1`: `make test-install`, every night. That
something speaks while a step lasts is tested without a clock: `tests/house/test_install.py` and
`tests/kernel/test_run.py`. How long nothing was said is printed here, and is compared with
`PERSPEX_LONGEST` seconds on a machine that does nothing else.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from support.repositories import ROOT, git, needs_git

pytestmark = [
    pytest.mark.skipif("PERSPEX_SOAK" not in os.environ, reason="fetches all packages; make soak"),
    pytest.mark.timeout(0),
]
# What is said in any case, in this order.
STEPS = [
    r"install: .* s  making the environment \.venv",
    r"install: .* s  reading what this repository needs",
    r"install: .* s  building the panel if there is Node\.js",
    r"install: .* s  finding jaxlib",
    r"install: .* s  unpacking all packages",
    r"install: .* s  done: \.venv is ready",
    r"examples/quickstart\.ipynb",
    r".* s  the kernel is up",
    r".* s  import time \.\.\.",
    r".* s  in all; written to build/quickstart\.html",
    r"Next: open build/quickstart\.html",
]


@needs_git
def test_the_demo_is_never_silent(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(ROOT, "clone", "--quiet", ROOT.as_uri(), str(clone))
    ours = ("PYTHON", "JUPYTER", "IPYTHON", "PERSPEX_", "VIRTUAL_ENV", "XDG_", "MAKE")
    environment = {name: v for name, v in os.environ.items() if not name.startswith(ours)}
    lines = [("make demo", time.monotonic())]
    with subprocess.Popen(
        ["make", "demo"],
        cwd=clone,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        lines += [(line, time.monotonic()) for line in process.stdout]
    told = "".join(line for line, _ in lines)
    assert process.returncode == 0, told
    assert re.search("(?ms)" + ".*".join(f"^{step}" for step in STEPS), told), told
    assert lines[-1][0].startswith("Next: "), told
    assert (clone / "build/quickstart.html").stat().st_size > 100_000
    gap, before, after = max(
        (then - now, before, after) for (before, now), (after, then) in itertools.pairwise(lines)
    )
    print(f"{lines[-1][1] - lines[0][1]:.0f} s in all, {gap:.1f} s without a line")
    longest = float(os.environ.get("PERSPEX_LONGEST", "inf"))
    assert gap < longest, f"{gap:.1f} s between {before!r} and {after!r}"
