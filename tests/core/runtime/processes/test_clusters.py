"""What a cluster's variables say of a process; the examples are from the manuals of each."""

from __future__ import annotations

import sys
from types import SimpleNamespace as Some
from typing import Any

import pytest

from perspex.runtime.processes import clusters

SLURM = {
    "SLURM_JOB_ID": "4242", "SLURM_NTASKS": "8", "SLURM_PROCID": "3", "SLURM_LOCALID": "1",
}  # fmt: skip
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}  # fmt: skip
URI = "OMPI_MCA_orte_hnp_uri"


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("node001", "node001"),
        ("node001,host2", "node001"),
        ("node[001-015],host2", "node001"),
        ("node[001,007-015],host2", "node001"),
        ("gpu-a[7]", "gpu-a7"),
    ],
)
def test_slurm(nodes: str, host: str) -> None:
    found = clusters.detected(None, {**SLURM, "SLURM_STEP_NODELIST": nodes})
    assert found == clusters.Cluster(f"{host}:{65535 - 4095 + 4242 % 4096}", 8, 3)


def test_a_port_that_is_given() -> None:
    environment = {**SLURM, "SLURM_STEP_NODELIST": "a", "JAX_COORDINATOR_PORT": "1234"}
    assert clusters.slurm(environment) == clusters.Cluster("a:1234", 8, 3)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911", "10.96.0.1:64110"),
        ("1314521088.0;tcp6://[fe80::b9b,2620:10d::2]:43370", "fe80::b9b:64296"),
    ],
)
def test_open_mpi(uri: str, address: str) -> None:
    job = int(uri.partition(".")[0]) // 4096
    port = job % 4096 + 65535 - 4095
    found = clusters.detected(None, {**OMPI, URI: uri})
    assert found == clusters.Cluster(f"{address.rpartition(':')[0]}:{port}", 4, 2)


def test_open_mpi_5_asks_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="mpi4py"):
        clusters.detected(None, {**OMPI, "OMPI_VERSION": "5.0.3"})
    world = Some(Get_rank=lambda: 1, Get_size=lambda: 2, bcast=lambda value, root: "first:62000")
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "mpi4py", Some())
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", Some(COMM_WORLD=world))
    found = clusters.detected("mpi4py", {})
    assert found == clusters.Cluster("first:62000", 2, 1)


def job(**labels: str) -> Any:
    return Some(metadata=Some(name="train", labels=labels), spec=Some(parallelism=3))


def in_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, the_job: Any, subdomain: Any) -> None:
    pod = Some(
        metadata=Some(name="train-1-x", labels={"job-name": "train"}),
        spec=Some(subdomain=subdomain),
    )
    client = Some(
        CoreV1Api=lambda: Some(list_namespaced_pod=lambda **given: Some(items=[pod])),
        BatchV1Api=lambda: Some(read_namespaced_job=lambda name, namespace: the_job),
    )
    (tmp_path / "namespace").write_text("default\n")
    monkeypatch.setattr(clusters, "_NAMESPACE", str(tmp_path / "namespace"))
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(clusters.socket, "gethostbyname", lambda name: "10.0.0.7")
    monkeypatch.setitem(sys.modules, "kubernetes", Some())
    monkeypatch.setitem(sys.modules, "kubernetes.client", client)
    config = Some(load_incluster_config=lambda: None)
    monkeypatch.setitem(sys.modules, "kubernetes.config", config)


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"}


def test_kubernetes(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    in_a_pod(monkeypatch, tmp_path, job(), "pods")
    assert clusters.detected(None, POD) == clusters.Cluster("train-0.pods:55527", 3, 1)
    labels = {"jobset.sigs.k8s.io/jobset-name": "set"}
    in_a_pod(monkeypatch, tmp_path, job(**labels), None)
    assert clusters.k8s(POD) == clusters.Cluster("train-0.set:55527", 3, 1)


def test_kubernetes_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    in_a_pod(monkeypatch, tmp_path, job(), None)
    with pytest.raises(RuntimeError, match="headless Service"):
        clusters.k8s(POD)
    in_a_pod(monkeypatch, tmp_path, job(), "pods")
    with pytest.raises(RuntimeError, match="Indexed"):
        clusters.k8s({"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="the package `kubernetes`"):
        clusters.k8s(POD)


def test_no_cluster() -> None:
    assert clusters.detected(None, {"HOME": "/root"}) is None
