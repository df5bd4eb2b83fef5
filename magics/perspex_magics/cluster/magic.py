"""`%cluster` and `%%spmd`: a notebook that drives several processes which compute together."""

from __future__ import annotations

import argparse
import atexit
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from perspex_magics.cluster.differences import differences
from perspex_magics.cluster.engines import ClusterError, Engines
from perspex_magics.cluster.outputs import First, failure, folded, numbers
from perspex_magics.display import notices
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import MagicParser, WordParser
from perspex_magics.session import Session

parser = WordParser(
    "cluster",
    """Start, stop and show the engines of this notebook: processes that compute together as one
program, in the cells with %%spmd.

    start    start engines
    status   show which engines live
    restart  end the engines, and start as many again; what they held is gone
    stop     end the engines""",
    """The notebook's own kernel sends cells to the engines and shows what they give; it is no part
of the program. Needs perspex[cluster].

Engines are processes of this machine, and listen on it only. With --engines, or with a profile of
IPython that says so, ipyparallel starts them elsewhere: `ssh`, `slurm`, `pbs`, `lsf`, `sge`, `mpi`,
`htcondor`. Then its controller listens at all interfaces of this machine; messages are signed.""",
    usage=(
        "%cluster {start,status,restart,stop} [-n COUNT] [--devices COUNT] [--profile NAME] "
        "[--engines NAME]"
    ),
)
parser.add_argument(
    "what", nargs="?", default="status", choices=("start", "status", "restart", "stop")
)
parser.add_argument("-n", type=int, default=2, metavar="COUNT", help="how many engines")
parser.add_argument(
    "--devices", type=int, default=1, metavar="COUNT", help="how many devices each of them has"
)
parser.add_argument("--profile", default="", metavar="NAME", help="a profile of IPython")
parser.add_argument(
    "--engines", default="", metavar="NAME", help="what starts the engines: a launcher's name"
)

spmd_parser = MagicParser(
    "spmd",
    """Run the cell on all engines of %cluster, as one program: each runs all of it.

What process 0 gives is shown in full, what the others give is folded. An error is shown once, with
the processes that raised it. An interrupt of the notebook interrupts all of them.""",
    """The cell may begin with magics of its own:

    %%spmd
    %%jit
    total = (x ** 2).sum()""",
)


class Cluster:
    """The engines of one notebook, if they run."""

    def __init__(self) -> None:
        self.engines: Engines | None = None

    def start(self, count: int, devices: int, profile: str, launcher: str = "") -> str:
        """Start engines; returns what to say of them."""
        if self.engines is not None:
            raise ClusterError(
                f"the cluster runs already, with {self.engines.count} engines; %cluster restart "
                "starts these again, and %cluster stop ends them"
            )
        if count < 1 or devices < 1:
            raise ClusterError(
                f"a cluster has at least one engine and device, got {count} and {devices}"
            )
        engines = Engines(count, devices, profile, launcher)
        engines.start()
        self.engines = engines
        return self.status()

    def stop(self) -> str:
        """End the engines."""
        engines, self.engines = self.engines, None
        if engines is None:
            return "no cluster runs"
        engines.stop()
        return f"{engines.count} engines ended"

    def restart(self) -> str:
        """End the engines, and start as many again."""
        engines = self.running()
        self.stop()
        return self.start(engines.count, engines.devices, engines.profile, engines.launcher)

    def status(self) -> str:
        """Which engines live."""
        if self.engines is None:
            return "no cluster runs; %cluster start -n 4 starts one with 4 engines"
        engines = self.engines
        dead = engines.dead()
        live = [i for i in range(engines.count) if i not in dead]
        total = engines.count * engines.devices
        said = f"{len(live)} of {engines.count} engines live, with {total} devices in all"
        return f"{said}; {numbers(dead)} died: run %cluster restart" if dead else said

    def running(self) -> Engines:
        """The engines; `ClusterError` if there are none."""
        if self.engines is None:
            raise ClusterError("no cluster runs; %cluster start -n 4 starts one with 4 engines")
        return self.engines


class ClusterMagics(Magic):
    """Start, stop and show the engines that %%spmd runs cells on."""

    line_parser = parser

    def __init__(self, session: Session, cluster: Cluster) -> None:
        super().__init__(session)
        self.cluster = cluster

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        try:
            if options.what == "start":
                given = options.n, options.devices, options.profile, options.engines
                said = self.cluster.start(*given)
            else:
                said = getattr(self.cluster, options.what)()
        except ClusterError as error:
            raise UsageError(f"%cluster {options.what}: {error}") from error
        print(said)


class SpmdMagics(Magic):
    """Run a cell on all engines of %cluster, as one program."""

    cell_parser = spmd_parser

    def __init__(self, session: Session, cluster: Cluster) -> None:
        super().__init__(session)
        self.cluster = cluster

    def on_cell(self, options: argparse.Namespace, line: str, body: str) -> None:
        # A line in place of that of this magic, so that lines have their numbers; magics have to
        # be the first.
        code = body if body.startswith("%%") else f"#\n{body}"
        first = First()
        try:
            engines = self.cluster.running()
            found = engines.run(code, self.shell.execution_count, first.show)
        except ClusterError as error:
            raise UsageError(f"%%spmd: {error}") from error
        first.show(found[0])
        others = folded(found[1:])
        if others is not None:
            display(others)
        reports = engines.settled()
        notes = [None if one is None else one["notes"] for one in reports]
        told = differences(notes, engines.held)
        if told:
            notices.warn("differs", told, "Processes differ", "%cluster status")
        failed, tracebacks = failure(found, engines.names)
        if tracebacks is not None:
            display(tracebacks)
        if failed is not None:
            raise failed


def drive_cluster(session: Session) -> None:
    """Bring both magics into a shell; its engines end with it."""
    cluster = session.keep(Cluster())
    ClusterMagics(session, cluster).register()
    SpmdMagics(session, cluster).register()
    session.on_unload(cluster.stop)
    atexit.register(cluster.stop)
    session.on_unload(lambda: atexit.unregister(cluster.stop))
