"""How the engines of a cluster are ended."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from ipyparallel.cluster.launcher import LocalControllerLauncher
from support.processes import have_ended, is_running

from perspex_magics.cluster.engines import Engines

# A controller that starts another process, and ends without it.
CONTROLLER = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
pathlib.Path("child.part").write_text(str(child.pid))
pathlib.Path("child.part").rename("child")
time.sleep(3600)
"""


class Started:
    """What a cluster is once its controller has started and its engines were refused."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", CONTROLLER]
        self.controller = LocalControllerLauncher(
            controller_cmd=command, work_dir=str(folder), profile_dir=str(folder), cluster_id="x"
        )
        self.controller.start()
        self.engines: dict[str, object] = {}

    def stop_cluster_sync(self) -> None:
        asyncio.run(self.controller.stop())


def test_processes_that_a_controller_leaves_are_ended(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    engines = Engines(2, 1, "", "slurm")
    engines._cluster = started = Started(tmp_path)
    while not (tmp_path / "child").exists():
        assert is_running(started.controller.pid), started.controller.get_output()
        time.sleep(0.01)
    child = int((tmp_path / "child").read_text())
    assert is_running(child)
    engines.stop()
    assert have_ended([started.controller.pid, child])
