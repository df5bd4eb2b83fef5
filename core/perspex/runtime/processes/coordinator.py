"""The coordinator: a process of its own with what the others share, a store of keys and heartbeats.

It is run as a script, by its path, and imports nothing of Perspex: only jaxlib. Process 0 starts
it. JAX has it inside process 0, and when that is killed, jaxlib ends all others: their C++ takes
the loss of the coordinator for the end of everything. Here any process can be killed, and the
others go on in Python.

It joins the others as the process after the last, so that it knows who lives, and it ends when all
have left or died. Until all have joined, it also ends when process 0 does, which closes its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

# Seconds between two looks at who lives.
EVERY = 0.5
# The keys of the processes that have left on purpose.
LEFT = "perspex/left/"
# Seconds that a process has for the rest of its own end, when all have left. jaxlib ends it with an
# error if the coordinator is gone first.
_GRACE = 10.0

READY = "ready"


def main(given: dict[str, Any]) -> None:
    """Serve until all processes have gone; `given` is what process 0 wrote."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    from jaxlib import _jax

    count = given["count"]
    common = {
        "heartbeat_timeout": given["heartbeat"],
        "shutdown_timeout": given["shutdown"],
        **given["certificates"],
    }
    try:
        service = _jax.get_distributed_runtime_service(
            given["bind"],
            count + 1,
            cluster_register_timeout=given["init"],
            recoverable=True,
            **common,
        )
    except RuntimeError as error:
        print(" ".join(str(error).split()), flush=True)
        return
    print(READY, flush=True)
    client = _jax.get_distributed_runtime_client(
        given["address"],
        count,
        init_timeout=given["init"],
        shutdown_on_destruction=False,
        use_compression=True,
        **common,
    )
    joined = threading.Event()
    threading.Thread(target=_end_with_process_0, args=[joined], daemon=True).start()
    try:
        client.connect()
    except RuntimeError:  # not all came, which each of them finds out as well
        os._exit(1)
    joined.set()
    # All that have joined take part in the agreement on where to stop.
    preemptions = _jax.create_preemption_sync_manager() if given["preemption"] else None
    if preemptions is not None:
        preemptions.initialize(client)
    live = set(range(count))
    threading.Thread(target=_watch, args=[client, count, live], daemon=True).start()
    while live - {int(key.rpartition("/")[2]) for key, _ in client.key_value_dir_get(LEFT)}:
        time.sleep(EVERY)
    time.sleep(_GRACE)
    if preemptions is not None:
        preemptions.shutdown()
    client.shutdown()
    service.shutdown()
    os._exit(0)


def _watch(client: Any, count: int, live: set[int]) -> None:
    """Remove from `live` the processes that have died. All ask who lives, and wait for all."""
    everyone = list(range(count + 1))
    while True:
        live &= set(client.get_live_nodes(everyone))
        time.sleep(EVERY)


def _end_with_process_0(joined: threading.Event) -> None:
    sys.stdin.read()
    if not joined.is_set():
        os._exit(1)


if __name__ == "__main__":
    main(json.loads(sys.stdin.readline()))
