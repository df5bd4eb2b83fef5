"""Several processes that compute together: `jax.distributed`.

Each process calls `initialize` before it uses a device. From then on `devices()` are those of all
processes, and a program over them runs in all of them at once. docs/scale.md shows how.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from perspex import config
from perspex.runtime import client
from perspex.runtime.processes import clusters, joining

__all__ = ["initialize", "is_initialized", "shutdown"]


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Join the other processes; wait until all of them are there.

    What is not given comes from the environment: `JAX_COORDINATOR_ADDRESS`, Slurm, Open MPI or
    Kubernetes.

    Args:
      coordinator_address: `host:port`, where process 0 starts the coordinator, a small process
        that knows who lives. On `localhost` it listens on this machine only.
      num_processes: how many processes there are.
      process_id: the number of this one, from 0.
      local_device_ids: which devices of a machine this process uses; a processor is one device.
      cluster_detection_method: `"slurm"`, `"ompi"`, `"k8s"` or `"mpi4py"`, where the environment
        does not decide, or `"deactivate"`.
      initialization_timeout: seconds to wait for the others.
      heartbeat_timeout_seconds: after so many seconds without a sign of life a process counts as
        dead, and the others raise `ProcessEndedError` where they wait for it.
      shutdown_timeout_seconds: so long the end of a process waits for that of the others.
      coordinator_bind_address: where the coordinator listens; at all interfaces if not given.
      slice_index, partition_index: for groups of accelerators; without effect on processors.
      mtls_cert_file, mtls_key_file, mtls_ca_file: certificates with which the processes prove who
        they are, from jaxlib 0.12 on.
      mtls_peer_uri_prefix: what the names in these certificates begin with.
      verify_secure_credentials: refuse to work without certificates.

    Returns:
      Nothing.

    Raises:
      RuntimeError: if a device has been used, or the process has joined already.
      ValueError: if neither arguments nor environment say who the processes are.
      TypeError: for numbers that are no integers.
      JaxRuntimeError: if not all processes are there in time.

    >>> import socket, subprocess, sys, textwrap
    >>> with socket.socket() as free:
    ...     free.bind(("localhost", 0))
    ...     address = f"localhost:{free.getsockname()[1]}"
    >>> program = textwrap.dedent('''
    ...     import sys, perspex
    ...     perspex.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
    ...     print(perspex.process_index(), perspex.device_count())
    ... ''')
    >>> run = [sys.executable, "-c", program, address]
    >>> others = [subprocess.Popen([*run, i], stdout=-1, text=True) for i in "01"]
    >>> for process in others:
    ...     print(process.communicate()[0], end="")
    0 2
    1 2
    """
    if joining.connection is not None:
        raise RuntimeError("distributed.initialize should only be called once in a process")
    if client.is_made():
        raise RuntimeError(
            "distributed.initialize must be called before anything uses a device: arrays, "
            "perspex.devices() and computations come after it"
        )
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    count, me = num_processes, process_id
    if None in (address, count, me) and cluster_detection_method != "deactivate":
        found = clusters.detected(cluster_detection_method)
        if found is not None:
            address = found.address if address is None else address
            count = found.processes if count is None else count
            me = found.me if me is None else me
    if address is None:
        raise ValueError(_missing("coordinator_address", "host:port of process 0"))
    if count is None:
        raise ValueError(_missing("num_processes", "how many processes there are"))
    if me is None:
        raise ValueError(_missing("process_id", "the number of this process"))
    for name, value in (("num_processes", count), ("process_id", me)):
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, got {value!r} of {type(value).__name__}")
    if not 0 <= me < count:
        raise ValueError(
            f"process_id must be at least 0 and less than num_processes, got process_id={me} and "
            f"num_processes={count}"
        )
    certificates = {
        "mtls_cert_file": mtls_cert_file,
        "mtls_key_file": mtls_key_file,
        "mtls_ca_file": mtls_ca_file,
        "mtls_peer_uri_prefix": mtls_peer_uri_prefix,
        "verify_secure_credentials": verify_secure_credentials,
    }
    joining.join(
        address,
        count,
        me,
        bind=coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS"),
        init_timeout=initialization_timeout,
        heartbeat=heartbeat_timeout_seconds,
        shutdown_timeout=shutdown_timeout_seconds,
        certificates={name: value for name, value in certificates.items() if value is not None},
        watches_preemption=config.enable_preemption_service.value,
    )


def _missing(name: str, meaning: str) -> str:
    return (
        f"distributed.initialize needs {name} ({meaning}): neither the arguments nor the "
        "environment say it"
    )


def is_initialized() -> bool:
    """Whether this process has joined others.

    Returns:
      A boolean.

    Raises:
      Nothing.

    >>> is_initialized()
    False
    """
    return joining.connection is not None


def shutdown() -> None:
    """Leave the other processes, once all of them leave; the end of the program does it, too.

    Returns:
      Nothing.

    Raises:
      Nothing.

    >>> shutdown()
    """
    joining.leave()
