"""`Worker`: a library in another process, asked over a pipe, restarted when it hangs or dies."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz.prelude import PRELUDE
from fuzz.programs import Statement

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# XLA looks for no fast code, so that programs compile fast and round alike.
QUICK = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
DEVICES = "--xla_force_host_platform_device_count=8"


class Broken(Exception):
    """The process did not answer: `hang`, or `crash` with the signal."""


class Worker:
    """A long-lived interpreter that runs programs under `library`."""

    def __init__(self, python: str, library: str, *, quick: bool = True, coverage: bool = False):
        self.python, self.library = python, library
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JAX_", "PERSPEX_", "PYTHONPATH", "XLA_"))
        }
        self.environment = kept | {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"{DEVICES} {QUICK if quick else ''}",
        }
        if library == "perspex":
            self.environment["PYTHONPATH"] = str(ROOT / "core")
        if coverage:
            self.environment["FUZZ_COVERAGE"] = "1"
        self.process: subprocess.Popen[bytes] | None = None
        self.log: Any = None
        self.rules: list[list[str]] = []

    def start(self) -> None:
        """Start the process, if none runs."""
        if self.process is not None:
            return
        self.log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 (closed in stop)
        self.process = subprocess.Popen(
            [self.python, str(HERE / "worker.py"), self.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=self.environment,
            bufsize=0,
        )
        self.rest = b""
        self.receive(120)

    def send(
        self,
        statements: Sequence[Statement],
        x64: bool,
        *,
        abstract: bool = False,
        given: dict[str, Any] | None = None,
        noise: int | None = None,
    ) -> None:
        """Ask for the outcomes of statements."""
        self.start()
        assert self.process is not None and self.process.stdin is not None
        request: dict[str, Any] = {
            "prelude": PRELUDE,
            "x64": x64,
            "statements": [[s.text, s.target] for s in statements],
        }
        if abstract:
            request["abstract"] = True
        if given:
            request["given"] = given
        if noise is not None:
            request["noise"] = noise
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self.broken("crash") from None

    def receive(self, seconds: float) -> Any:
        """The answer; raises `Broken` after that many seconds, or when the process ends.

        The seconds are those of its processor; ten times as many may pass on the clock.
        """
        assert self.process is not None and self.process.stdout is not None
        begin, used = time.monotonic(), self.used()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], min(seconds, 1))
            if not ready:
                late = time.monotonic() - begin > 10 * seconds or self.used() - used > seconds
                if late:
                    raise self.broken("hang")
                continue
            got = self.process.stdout.read(1 << 20)
            if not got:
                raise self.broken("crash")
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        answer = json.loads(line)
        if isinstance(answer, dict):
            self.rules += answer.get("rules", [])
            return answer["outcomes"]
        return answer

    def ask(
        self, statements: Sequence[Statement], x64: bool, seconds: float, **options: Any
    ) -> Any:
        """The outcomes of statements."""
        self.send(statements, x64, **options)
        return self.receive(seconds)

    def size(self) -> int:
        """The bytes of memory that the process has; 0 if none runs."""
        if self.process is None:
            return 0
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def used(self) -> float:
        """The seconds of processor that the process has taken."""
        assert self.process is not None
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        ticks = stat.rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def broken(self, kind: str) -> Broken:
        """The error, once the process has ended and its last words are read."""
        assert self.process is not None
        code = self.process.poll() if kind == "hang" else self.process.wait(20)
        words = self.stop()
        if kind == "crash" and code is not None and code < 0:
            kind = f"crash ({signal.Signals(-code).name})"
        return Broken(f"{self.library}: {kind}\n{words}")

    def stop(self) -> str:
        """End the process; returns the end of what it wrote."""
        if self.process is None:
            return ""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process = None
        self.log.seek(0)
        words = self.log.read().decode(errors="replace")[-1500:]
        self.log.close()
        return words
