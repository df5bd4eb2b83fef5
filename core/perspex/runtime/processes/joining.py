"""Joining the other processes before the first device is used, and leaving them at the end."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perspex import config
from perspex.base import xla
from perspex.runtime.processes import coordinator
from perspex.runtime.processes.agreement import Agreement, Program, value
from perspex.runtime.processes.connection import Connection
from perspex.sharding import NamedSharding

# This process among the others, and the programs that they run; `None` while it computes alone.
connection: Connection | None = None
agreement: Agreement | None = None
# So many elements of a value are looked through for the first difference.
_SHOWN = 10_000
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def join(
    address: str,
    count: int,
    me: int,
    *,
    bind: str | None = None,
    init_timeout: int,
    heartbeat: int,
    shutdown_timeout: int,
    certificates: dict[str, Any],
    watches_preemption: bool,
) -> Connection:
    """Wait for all other processes at the coordinator, which process 0 starts.

    Raises `JaxRuntimeError` if they are not all there after `init_timeout` seconds.
    """
    global agreement, connection
    if certificates and not xla.KNOWS_CERTIFICATES:
        raise NotImplementedError(
            f"certificates ({', '.join(certificates)}) need jaxlib 0.12, and this is "
            f"{xla.JAXLIB_VERSION}; leave them out on a network that you trust, or update jaxlib"
        )
    if me == 0:
        _start_coordinator(
            {
                "bind": bind or _everywhere(address),
                "address": address,
                "count": count,
                "init": init_timeout,
                "heartbeat": heartbeat,
                "shutdown": shutdown_timeout,
                "certificates": certificates,
                "preemption": watches_preemption,
            }
        )
    client = xla.make_distributed_client(
        address,
        me,
        init_timeout=init_timeout,
        heartbeat_timeout=heartbeat,
        shutdown_timeout=shutdown_timeout,
        **certificates,
    )
    client.connect()
    connection = Connection(address, me, count, client, heartbeat, shutdown_timeout)
    agreement = Agreement(connection)
    if watches_preemption:
        connection.preemptions = xla.create_preemption_sync_manager()
        connection.preemptions.initialize(client)
    return connection


def _everywhere(address: str) -> str:
    """Where the coordinator listens: at all interfaces, or at none if `address` is at none."""
    host, _, port = address.rpartition(":")
    return address if host in _LOOPBACK else f"[::]:{port}"


def _start_coordinator(given: dict[str, Any]) -> None:
    # Its own group of processes, so that Ctrl-C in a terminal is not for it. It outlives this
    # process if others do, so nobody waits for it, and it holds none of the files of this one.
    process = subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", coordinator.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(given) + "\n")
    process.stdin.flush()
    said = process.stdout.readline().strip()
    if said != coordinator.READY:
        raise RuntimeError(
            f"the coordinator cannot listen at {given['bind']}: {said or 'it has ended'}; choose "
            "another port, or coordinator_bind_address"
        )
    _coordinators.append(process)


# Kept, so that the input stays open.
_coordinators: list[subprocess.Popen[str]] = []


def leave() -> None:
    """Leave the other processes, when they want to as well."""
    global agreement, connection, _is_cut_off
    if connection is not None:
        left, connection, agreement = connection, None, None
        left.leave()
        _is_cut_off = left.is_cut_off


# Whether a thread waits in C++ for a process that this one has left.
_is_cut_off = False


@atexit.register
def _end() -> None:
    leave()
    if _is_cut_off:
        # Python would free the client, which waits for that thread for ever, or the thread would
        # wake up without a Python to return to, and abort.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def agreed(program: Program, lowered: Callable[[], Any]) -> None:
    """Return when all processes are about to run a program, which `lowered` gives as text.

    Raises what `Agreement.reach` does, and `RuntimeError` after this process has left.
    """
    if agreement is None:
        raise RuntimeError(
            f"`{program.name}` runs on devices of several processes ({program.processes}), which "
            "this one has left by distributed.shutdown()"
        )
    agreement.reach(program, lambda: lowered().as_text())


def same(host: np.ndarray, sharding: NamedSharding) -> None:
    """Make sure that all processes put the same value on the devices of a sharding.

    Raises what `Agreement.reach` does. Nothing is compared if a process has none of the devices.
    """
    if agreement is None or not config.check_processes.value:
        return
    given = value(host, sharding.mesh)
    if len(given.processes) == agreement.others.count:
        agreement.compare(given, lambda: np.array2string(host, threshold=_SHOWN))


def run(name: str, processes: Sequence[int], launch: Callable[[], list[Any]]) -> list[Any]:
    """The results of `launch()`, which starts a program here; waits for the other processes.

    Gloo (jaxlib 0.10 and 0.12) blocks a thread of XLA's for each exchange, so runs that are under
    way at once can take all of them and wait for one another for ever: 200 calls of a sum in a
    row, with one or two devices in each of two processes, did so in four of eight trials. XLA runs
    a small program in the thread that starts it, so that must not be the main one either.
    """

    def work() -> list[Any]:
        outs = launch()
        for out in outs:
            xla.block_until_ready(out)
        return outs

    return work() if connection is None else connection.wait(work, f"`{name}`", set(processes))


def collectives() -> Any:
    """How the processors of several processes exchange numbers: by Gloo, over TCP."""
    assert connection is not None
    host = connection.address.rpartition(":")[0]
    # Otherwise at the address that the name of this machine has.
    name = {"hostname": "127.0.0.1"} if host in _LOOPBACK else {}
    return xla.make_gloo_collectives(distributed_client=connection.client, **name)
