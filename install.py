"""Makes a virtual environment and installs the repository into it, and says what it is doing.

    python install.py .venv ".[dev]"

pip is either silent or prints thousands of lines. This prints what pip fetches, in a line per
package, and at least every five seconds how long it has been at work and with what. Only Python's
own library is needed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

EVERY = 5.0
ROOT = Path(__file__).resolve().parent
# Lines of pip that say what it does, and how that is called here.
_STEPS = {
    r"Obtaining file": "reading what this repository needs",
    r"Collecting ([\w.-]+)": "finding {0}",
    r"Downloading \S*?([\w.]+)-\d\S* \((.+?)\)": "fetching {0}, {1}",
    r"Using cached ([\w.]+)-": "{0} was fetched before",
    r"Building (?:editable|wheel) for perspex": "building Perspex, and its panel if it can",
    r"Preparing editable metadata": "building the panel if there is Node.js: a minute or more",
    r"Installing collected packages": "unpacking all packages",
}


class Progress:
    """What is being done, told when it changes and while it lasts."""

    def __init__(self) -> None:
        self.started = self.told = time.monotonic()
        self.step, self.count = "", 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()

    def say(self, step: str) -> None:
        """Begin a step."""
        if step != self.step:
            self.step = step
            self._tell(step)

    def end(self, text: str) -> None:
        """Say the last line."""
        self._ended.set()
        self._thread.join()
        self._tell(text)

    def _tell(self, text: str) -> None:
        self.told = time.monotonic()
        print(f"install: {self.told - self.started:4.0f} s  {text}", flush=True)

    def _repeat(self) -> None:
        while not self._ended.wait(EVERY / 5):
            if time.monotonic() - self.told >= EVERY:
                self._tell(f"still {self.step}")


def step_of(line: str) -> str | None:
    """What a line of pip's means; `None` if it tells nothing new."""
    for pattern, says in _STEPS.items():
        found = re.match(rf"\s*{pattern}", line)
        if found:
            return says.format(*found.groups())
    return None


def main(folder: str, what: str) -> int:
    """Make the environment and install into it; returns pip's exit status."""
    progress = Progress()
    progress.say(f"making the environment {folder}; the first time takes a minute or more")
    venv.create(folder, with_pip=True, symlinks=sys.platform != "win32")
    python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    lines = []
    with subprocess.Popen(
        [*command, "--editable", what],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            lines.append(line)
            step = step_of(line)
            if step is not None:
                progress.say(step)
    if pip.returncode:
        progress.end("pip failed; its last lines:")
        print("".join(lines[-30:]), file=sys.stderr)
    else:
        progress.end(f"done: {folder} is ready")
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
