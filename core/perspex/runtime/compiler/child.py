"""The compiler process: another process ends a compilation by ending it.

It is run as a script, by its path, and imports nothing of Perspex: only jaxlib, which takes 0.15 s.
It reads requests from its standard input and writes answers to a pipe of its own, because XLA may
be told to write to the standard output (`--xla_dump_to=-`). When its input ends, which is also how
it hears that the other process was killed, it ends at once, whatever it is doing.

A message is a list of byte strings, each behind its length:

* first of all, from here: the versions of jaxlib and of its platform, or why there are none;
* a request: numbers of devices (as text), options, the module, and `1` if it calls LAPACK;
* an answer: `begun`, so that the end of an idle process is not taken for that of a compilation;
  then `done` and the executable, or `failed` and why.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import IO, Any

_SIZE = 8
BEGUN, DONE, FAILED = b"begun", b"done", b"failed"


def send(file: IO[bytes], *parts: bytes) -> None:
    """Write a message."""
    sizes = [len(parts), *map(len, parts)]
    file.write(b"".join([size.to_bytes(_SIZE, "little") for size in sizes]))
    for part in parts:
        file.write(part)
    file.flush()


def receive(file: IO[bytes]) -> list[bytes]:
    """Read a message; raises `EOFError` where there is none, or only a part of one."""
    count = _number(_exactly(file, _SIZE))
    sizes = [_number(_exactly(file, _SIZE)) for _ in range(count)]
    return [_exactly(file, size) for size in sizes]


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def versions(client: Any, version: str) -> tuple[bytes, bytes]:
    """What must agree at both ends, so that their programs agree."""
    return version.encode(), client.platform_version.encode()


class _Compiler:
    """XLA, on as many devices as the other process has."""

    def __init__(self, devices: int) -> None:
        from jaxlib import version, xla_client

        self.xla_client = xla_client
        self.client = xla_client.make_cpu_client(num_devices=devices)
        self.versions = versions(self.client, version.__version__)
        self.devices = {device.id: device for device in self.client.local_devices()}
        self.knows_lapack = False

    def compile(self, numbers: bytes, options: bytes, code: bytes, needs_lapack: bytes) -> bytes:
        if needs_lapack and not self.knows_lapack:
            self._learn_lapack()
        chosen = [self.devices[int(number)] for number in numbers.split()]
        parsed = self.xla_client.CompileOptions.ParseFromString(options)
        return self.client.compile_and_load(code, chosen, parsed).serialize()

    def _learn_lapack(self) -> None:
        """Register the targets, as `perspex.hlo.lapack` does in the other process."""
        from jaxlib import lapack

        for platform, targets in lapack.registrations().items():
            for name, capsule, api_version in targets:
                self.xla_client.register_custom_call_target(
                    name, capsule, platform=platform, api_version=api_version
                )
        self.knows_lapack = True


def _give_way() -> None:
    """Make Linux end this process, and not the notebook, when memory runs out."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")


def main(answers: int, devices: int, *path: str) -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _give_way()
    sys.path += path
    requests, out = sys.stdin.buffer, os.fdopen(answers, "wb")
    try:
        compiler = _Compiler(devices)
    except Exception as error:
        send(out, FAILED, _text(error))
        return
    send(out, *compiler.versions)

    def answer(request: list[bytes]) -> None:
        send(out, BEGUN)
        try:
            result = [DONE, compiler.compile(*request)]
        except Exception as error:
            result = [FAILED, _text(error)]
        send(out, *result)

    while True:
        try:
            request = receive(requests)
        except EOFError:
            os._exit(0)
        # In another thread, so that this one goes on reading.
        threading.Thread(target=answer, args=[request], daemon=True).start()


def _text(error: Exception) -> bytes:
    return f"{type(error).__name__}: {error}".encode(errors="replace")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
