"""A notebook that drives a cluster of two engines: results, errors, an interrupt and a death."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import batch
from support.processes import have_ended, is_running
from support.session import Ran, Session, open_session

SETUP = """%%spmd
import os, signal, time
import perspex, numpy as np, perspex.numpy as jnp
me = perspex.process_index()
mesh = perspex.make_mesh((perspex.device_count(),), ("x",))
x = perspex.device_put(np.arange(8.0), perspex.NamedSharding(mesh, perspex.P("x")))
print("joined", me)
perspex.device_count()
"""


@pytest.fixture
def cluster(live: Session) -> Iterator[Session]:
    live.ok("%cluster start -n 2 --devices 2")
    live.ok("%cluster status")
    live.ok(SETUP)
    yield live
    live.ok("%cluster stop")


def texts(ran: Ran) -> list[str]:
    """The plain texts of what was displayed."""
    contents = [o["content"] for o in ran.outputs if o["msg_type"] == "display_data"]
    return [content["data"]["text/plain"] for content in contents]


def differing(ran: Ran) -> list[str]:
    """What the notice of differences says."""
    contents = [o["content"]["data"] for o in ran.outputs if o["msg_type"] == "display_data"]
    kind = "application/vnd.perspex.differs+json"
    return [text for data in contents if kind in data for text in data[kind]["told"]]


def pids(live: Session) -> list[int]:
    code = "from perspex_magics.session import part\nfrom perspex_magics.cluster.magic import *\n"
    return eval(live.ok(code + "part(get_ipython(), Cluster).engines.pids").text)


def test_a_cluster_from_start_to_end(cluster: Session) -> None:
    live = cluster
    assert "2 of 2 engines live, with 4 devices" in live.ok("%cluster status").stdout

    # Process 0 in full, and the other folded.
    ran = live.ok(SETUP)
    assert ran.stdout == "joined 0\n"
    assert texts(ran) == ["4", "[process 1: 2 lines]"]
    live.ok("%%spmd\n%%jit\ntotal = (x * 2).sum()")
    assert live.ok("%%spmd\nprint(total)").stdout == "56.0\n"

    # Errors once, with the processes that had them.
    ran = live.run("%%spmd\nif me: 1 / 0")
    assert ran.ename == "SpmdError"
    assert ran.reply["evalue"] == "ZeroDivisionError on process 1: division by zero"
    ran = live.run("%%spmd\n\nperspex.jit(lambda a: (a * (2 + me)).sum())(x)")
    text = ran.reply["evalue"]
    assert text.startswith("ProgramMismatchError on processes 0-1: the processes are about to run")
    assert f"at Cell In[{ran.reply['execution_count']}]:3" in text
    assert "dense<2.0" in text and "dense<3.0" in text

    # Processes that disagree: another value of a captured variable, and another shape.
    live.ok("%%spmd\nrate = 0.5\nstep = perspex.jit(lambda v: v * rate)\nstep(np.ones(3))")
    assert not differing(live.ok("%%spmd\nrate = 0.25\nstep.retrace()\nstep(np.ones(3))"))
    ran = live.ok("%%spmd\nif me:\n    rate = 2.0\nstep(np.ones(3))")
    line = f"Cell In[{ran.reply['execution_count']}]"
    (told,) = differing(ran)
    assert told.startswith(
        "`rate`, which `<lambda>` captured, is 0.25 on process 0, 2.0 on process 1"
    )
    assert f"changed in {line}:3" in told
    live.ok("%%spmd\ntwice = perspex.jit(lambda u: u * 2)\ntwice(np.ones(3))")
    ran = live.ok("%%spmd\ntwice(np.ones(3 + me))")
    line = f"Cell In[{ran.reply['execution_count']}]"
    (told,) = differing(ran)
    assert told.startswith(f"`<lambda>` was recompiled at {line}:2, where `u`")
    assert "on process 1" in told and "; process 0 did not recompile it." in told

    # An interrupt interrupts both, also the one that waits for the other; all goes on then.
    waiting = "%%spmd\nprint('begun', flush=True)\nif not me: time.sleep(1000)\njnp.cos(x)"
    ran = live.interrupt(waiting, "begun")
    assert ran.ename == "KeyboardInterrupt"
    assert live.ok("%%spmd\nprint(jnp.square(x).sum())").stdout == "140.0\n"

    # A death is named, and the other engine is free.
    before = pids(live)
    ran = live.run("%%spmd\nif me: os.kill(os.getpid(), signal.SIGKILL)\n(x * 7).sum()")
    lines = ran.reply["evalue"].splitlines()
    assert lines[0].startswith(f"process 1 (pid {before[1]}) died while it ran the cell")
    assert lines[1].startswith("ProcessEndedError on process 0: process 1 (host ")
    assert "1 of 2 engines live" in live.ok("%cluster status").stdout
    assert "process 1" in live.run("%%spmd\n1").stderr

    # The notebook goes on with another cluster.
    assert "2 of 2 engines live" in live.ok("%cluster restart").stdout
    assert not any(map(is_running, before))
    assert live.ok("%%spmd\nimport perspex\nprint(perspex.device_count())").stdout == "4\n"
    after = pids(live)
    live.ok("%cluster stop")
    assert not any(map(is_running, after))


def test_engines_of_a_batch_system(
    jupyter_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sbatch` gets a job that starts the engines; signals and deaths go through ipyparallel."""
    batch.install(tmp_path, "slurm")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with open_session() as live:
        # The script of the job is written into the notebook's folder.
        live.ok(f"import os; os.chdir({str(tmp_path)!r})")
        live.ok("%cluster start -n 2 --devices 2 --engines slurm")
        job = (tmp_path / "job").read_text()
        assert "#SBATCH --ntasks=2" in job and "ipyparallel.engine" in job
        assert live.ok(SETUP).stdout == "joined 0\n"
        assert live.ok("%%spmd\nprint((x * 2).sum())").stdout == "56.0\n"

        ran = live.interrupt("%%spmd\nprint('begun', flush=True)\ntime.sleep(1000)", "begun")
        assert ran.ename == "KeyboardInterrupt"

        before, host = pids(live), socket.gethostname()
        ran = live.run("%%spmd\nif me: os.kill(os.getpid(), signal.SIGKILL)\n(x * 7).sum()")
        first = ran.reply["evalue"].splitlines()[0]
        assert first.startswith(f"process 1 (pid {before[1]} on {host}) died while it ran the cell")
        assert "1 of 2 engines live" in live.ok("%cluster status").stdout
        live.ok("%cluster stop")
        assert have_ended(before)
    assert (tmp_path / "cancelled").read_text().split() == [batch.JOB]


# How each system is told to start two engines, in the script of a job or in a profile.
JOBS = {"pbs": "#PBS -t 1-2", "lsf": "#BSUB -J ipengine[1-2]"}
HOSTS = """
c = get_config()
c.Cluster.engine_launcher_class = "ssh"
c.SSHEngineSetLauncher.engines = {"first": 1, "user@second": 1}
c.SSHEngineSetLauncher.remote_python = PYTHON
"""


@pytest.mark.parametrize("system", ["pbs", "lsf", "ssh"])
def test_engines_that_other_programs_start(
    system: str, jupyter_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`qsub`, `bsub` or `ssh` starts engines; they join one program, and all are ended."""
    batch.install(tmp_path, system)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    options = f"--engines {system}"
    if system == "ssh":
        profile = jupyter_home / "ipython" / "profile_hosts"
        profile.mkdir(parents=True, exist_ok=True)
        config = HOSTS.replace("PYTHON", repr(sys.executable))
        (profile / "ipcluster_config.py").write_text(config)
        options = "--profile hosts"
    with open_session() as live:
        live.ok(f"import os; os.chdir({str(tmp_path)!r})")
        live.ok(f"%cluster start -n 2 --devices 2 {options}")
        if system == "ssh":
            assert set((tmp_path / "hosts").read_text().split()) == {"first", "user@second"}
        else:
            job = (tmp_path / "job").read_text()
            assert JOBS[system] in job and "ipyparallel.engine" in job
        assert live.ok(SETUP).stdout == "joined 0\n"
        assert live.ok("%%spmd\nprint((x * 2).sum())").stdout == "56.0\n"
        before = pids(live)
        live.ok("%cluster stop")
        assert have_ended(before)
    if system != "ssh":
        assert set((tmp_path / "cancelled").read_text().split()) == {batch.JOB}


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("refusing", "the engines did not start: Command '['sbatch', "),
        ("", "SlurmEngineSetLauncher needs the program `sbatch`, which is not on the PATH"),
    ],
)
def test_a_system_that_starts_nothing_is_named(
    system: str,
    said: str,
    jupyter_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if system:
        batch.install(tmp_path, system)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with open_session() as live:
        live.ok(f"import os; os.chdir({str(tmp_path)!r})")
        assert said in live.run("%cluster start -n 2 --engines slurm").stderr
        assert "no cluster runs" in live.ok("%cluster status").stdout
    # What was not started is not cancelled.
    assert not (tmp_path / "cancelled").exists()
