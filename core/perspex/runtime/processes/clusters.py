"""Who the processes are, as the programs that start them say in the environment.

Slurm, Open MPI and Kubernetes are found by themselves, in this order, and `mpi4py` where it is
asked for. The names of the variables are theirs; the ports are those of JAX, so that all processes
take the same one without asking.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

Environment = Mapping[str, str]

# The ports that a job's number chooses from, the last of all.
_PORTS = 4096
_FIRST_PORT = 65536 - _PORTS
# Kubernetes has no number to choose by.
_KUBERNETES_PORT = 55527


class Cluster(NamedTuple):
    """What a process is told: where the coordinator is, how many there are, and its number."""

    address: str
    processes: int
    me: int


def _port(environment: Environment, job: int) -> str:
    return environment.get("JAX_COORDINATOR_PORT") or str(job % _PORTS + _FIRST_PORT)


# ---- Slurm --------------------------------------------------------------------------------------

_SLURM = (
    "SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID",
)  # fmt: skip


def slurm(environment: Environment) -> Cluster | None:
    """A step of a Slurm job: the first of its nodes has the coordinator."""
    if any(name not in environment for name in _SLURM):
        return None
    job, nodes, count, me, _ = [environment[name] for name in _SLURM]
    # `node001`, `node001,node002`, `node[001-015]` and `node[001,007-015],other`.
    first = re.match(r"(?P<name>[^,\[]+)(\[(?P<number>[^,\-\]]+))?", nodes)
    if first is None:
        raise RuntimeError(f"SLURM_STEP_NODELIST names no node: {nodes!r}")
    host = first["name"] + (first["number"] or "")
    return Cluster(f"{host}:{_port(environment, int(job))}", int(count), int(me))


# ---- MPI ----------------------------------------------------------------------------------------

_OMPI = "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"
_URI = "OMPI_MCA_orte_hnp_uri"
# Job numbers of Open MPI are multiples of this.
_JOBS = 4096


def ompi(environment: Environment) -> Cluster | None:
    """A job of Open MPI. From version 5 on it does not say where it was started: mpi4py knows."""
    if any(name not in environment for name in _OMPI):
        return None
    version = environment.get("OMPI_VERSION", "").partition(".")[0]
    is_recent = int(version) >= 5 if version.isdigit() else _URI not in environment
    if is_recent:
        found = mpi4py(environment)
        if found is None:
            raise RuntimeError(
                "Open MPI 5 does not say where process 0 runs, and the package mpi4py, which "
                "could ask, is not installed; install it, or pass coordinator_address"
            )
        return found
    # `1531576320.0;tcp://10.96.0.1,10.148.0.1:34911` or `...;tcp6://[fe80::1,2620::2]:43370`.
    uri = environment.get(_URI, "")
    where = re.match(r"(\d+)\..*?(?:tcp://([^,:]+)|tcp6://\[([^,\]]+))", uri)
    if where is None:
        raise RuntimeError(f"{_URI} names no address: {uri!r}; pass coordinator_address")
    job, host = int(where[1]) // _JOBS, where[2] or where[3]
    count, me = [int(environment[name]) for name in _OMPI[:2]]
    return Cluster(f"{host}:{_port(environment, job)}", count, me)


def mpi4py(environment: Environment) -> Cluster | None:
    """The processes of `MPI.COMM_WORLD`, if the package mpi4py is installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    mpi: Any = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    me = int(world.Get_rank())
    host = socket.gethostname()
    job = sum(host.encode())
    address = world.bcast(f"{host}:{_port(environment, job)}" if me == 0 else None, root=0)
    return Cluster(address, int(world.Get_size()), me)


# ---- Kubernetes ---------------------------------------------------------------------------------

_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


def k8s(environment: Environment) -> Cluster | None:
    """The pods of an indexed Job of Kubernetes; its pod 0 has the coordinator.

    The package `kubernetes` reads what the pod belongs to.
    """
    if "KUBERNETES_SERVICE_HOST" not in environment:
        return None
    if importlib.util.find_spec("kubernetes") is None:
        raise RuntimeError(
            "this is a pod of Kubernetes, and the package `kubernetes`, which knows its job, is "
            "not installed; install it, or pass coordinator_address, num_processes and process_id"
        )
    job, subdomain = _job(environment)
    index = environment.get("JOB_COMPLETION_INDEX")
    if index is None:
        raise RuntimeError(
            'the Job of this pod does not number its pods: set `completionMode: "Indexed"`'
        )
    port = environment.get("JAX_COORDINATOR_PORT") or str(_KUBERNETES_PORT)
    address = f"{job.metadata.name}-0.{subdomain}:{port}"
    return Cluster(address, int(job.spec.parallelism), int(index))


def _job(environment: Environment) -> tuple[Any, str]:
    """The Job of this pod, and the name of the service in which its pods find each other."""
    client: Any = importlib.import_module("kubernetes.client")
    importlib.import_module("kubernetes.config").load_incluster_config()
    with open(_NAMESPACE, encoding="utf-8") as file:
        namespace = file.read().strip()
    address = socket.gethostbyname(environment.get("HOSTNAME") or socket.gethostname())
    (pod,) = (
        client.CoreV1Api()
        .list_namespaced_pod(namespace=namespace, field_selector=f"status.podIP={address}")
        .items
    )
    name = (pod.metadata.labels or {}).get("job-name")
    if name is None:
        raise RuntimeError(
            f"the pod {pod.metadata.name} belongs to no Job of Kubernetes; only Jobs and JobSets "
            "are found by themselves, so pass coordinator_address, num_processes and process_id"
        )
    job = client.BatchV1Api().read_namespaced_job(name=name, namespace=namespace)
    labels = job.metadata.labels or {}
    subdomain = labels.get("jobset.sigs.k8s.io/jobset-name") or pod.spec.subdomain
    if subdomain is None:
        raise RuntimeError(
            f"the pods of the Job {name} cannot reach each other by name: add a headless Service "
            "that selects them, and name it in the Job as `spec.template.spec.subdomain`"
        )
    return job, subdomain


# ---- All of them --------------------------------------------------------------------------------

METHODS = {"slurm": slurm, "ompi": ompi, "k8s": k8s, "mpi4py": mpi4py}
_BY_THEMSELVES = ("slurm", "ompi", "k8s")


def detected(method: str | None, environment: Environment = os.environ) -> Cluster | None:
    """What the environment says, or `None` if no cluster has started this process.

    Raises `ValueError` for a method that there is not, or that this process was not started by.
    """
    if method is None:
        asked = (METHODS[name](environment) for name in _BY_THEMSELVES)
        return next(filter(None, asked), None)
    if method not in METHODS:
        raise ValueError(
            f"cluster_detection_method is one of {[*METHODS, 'deactivate']}, got {method!r}"
        )
    found = METHODS[method](environment)
    if found is None:
        raise ValueError(
            f"cluster_detection_method={method!r}, but nothing in the environment of this process "
            "says that it was started so"
        )
    return found
