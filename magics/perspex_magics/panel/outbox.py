"""The thread that keeps the tables up to date and sends the changes to the clients.

It sleeps while there is no news, and ends when the last client goes. Its work costs the running
cell time, because Python's threads take turns. While a cell runs, each piece of work therefore gets
a share of the time, all of them together a hundredth: a topic that has just taken 2 ms has its next
turn after 4 s. Between cells there is more time, but the next cell is often about to begin, so work
waits first, and longer work waits longer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from IPython.core.interactiveshell import InteractiveShell

from perspex.base.events import report_ignored
from perspex_magics.notebook.running import Running
from perspex_magics.panel.clients import Client, Clients
from perspex_magics.panel.contract import Changes, TopicChanges
from perspex_magics.panel.contract import Topic as Name
from perspex_magics.panel.places import Places
from perspex_magics.panel.tables import Delta
from perspex_magics.panel.topics.topic import CellBeganError, Topic

# The least time between two batches, in seconds.
_PERIOD = 0.05
# The shares of a cell's time for a topic and for sending: 1/2,000 and 1/300.
_TOPICS_SHARE, _SENDING_SHARE = 2_000, 300
# Between cells work waits for 100 times its own length, at most 0.25 s.
_PATIENCE, _LONGEST_PATIENCE = 100, 0.25
# The least time between two turns, in seconds.
_NAP = 0.02
# Seconds until a topic that failed is tried again.
_AFTER_FAILURE = 5.0
_MOST_ROWS = 500


class Work:
    """Recurring work: when it was last done, and how long it took.

    It gets one part in `share` of a cell's time.
    """

    def __init__(self, share: int) -> None:
        self.share = share
        self.last = self.cost = 0.0

    def due(self, busy: bool, since: float) -> float:
        """When to do it next, if a cell runs (`busy`) or none does `since` some time."""
        soonest = self.last + _PERIOD
        if busy:
            # Nor at the beginning of the cell: most cells end before this is due.
            return max(soonest, max(self.last, since) + self.share * self.cost)
        return max(soonest, since + min(_PATIENCE * self.cost, _LONGEST_PATIENCE))

    def __enter__(self) -> Work:
        self._began = time.thread_time()
        return self

    def __exit__(self, *raised: object) -> None:
        self.cost = time.thread_time() - self._began
        self.last = time.monotonic()


class Table(Work):
    """A topic that a page shows, and when it has to be brought up to date."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(_TOPICS_SHARE)
        self.topic = topic
        self.is_ready = self.has_failed = False
        self.has_news = True
        self.again: float | None = None

    def wanted(self, busy: bool, since: float) -> float | None:
        """When it is due, or `None` if it is not."""
        if not self.has_news and self.again is None:
            return None
        due = self.due(busy, since)
        return due if self.has_news or self.again is None else max(due, self.again)

    def refresh(self) -> None:
        """Bring the topic up to date; an error is reported, once, and not raised."""
        self.has_news = False
        wait: float | None = _AFTER_FAILURE
        before = self.cost
        try:
            with self:
                wait = self.topic.refresh()
        except CellBeganError:
            # It was interrupted, so the measured cost is too small.
            self.cost = max(self.cost, before)
            self.has_news = True
            return
        except Exception as error:
            if not self.has_failed:
                report_ignored(error, "in the Perspex panel", self.topic.refresh)
            self.has_failed = True
        self.again = None if wait is None else self.last + wait
        self.is_ready = True

    def changed(self) -> None:
        """There is news."""
        self.has_news = True

    def changes(self, cursor: int, most: int) -> tuple[Delta | None, int]:
        """The changes for a client that knows the table up to `cursor`."""
        if not self.is_ready:
            return None, cursor
        return self.topic.table.changes(cursor, most)


class Outbox:
    """Sends changes to the clients of one notebook."""

    def __init__(
        self, shell: InteractiveShell, places: Places, kinds: Mapping[Name, type[Topic]]
    ) -> None:
        self.shell, self.places, self.kinds = shell, places, kinds
        self.clients = Clients()
        self.tables: dict[Name, Table] = {}
        # Tables that no page shows at present and whose topics keep their rows.
        self._kept: dict[Name, Table] = {}
        self.cells: Running[None] = Running()
        # When the outermost cell began, or the last one ended.
        self._since = 0.0
        self._batch = Work(_SENDING_SHARE)
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None

    def topic(self, name: Name) -> Topic | None:
        """A topic that a page shows."""
        table = self.tables.get(name)
        return None if table is None else table.topic

    def wake(self) -> None:
        """There is news, or the clients have changed."""
        if not self._awake.is_set():
            self._awake.set()

    def refresh_all(self) -> None:
        """A request has changed something: all tables may have news, as after a cell."""
        for table in list(self.tables.values()):
            table.topic.cell_ended(0)

    def open(self, name: str, client: Client) -> None:
        """Add a client, and start the thread if it does not run."""
        self.clients.add(name, client)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # a fork has no such thread
                self._thread = threading.Thread(target=self._run, name="perspex-panel", daemon=True)
                self._thread.start()
        self.wake()

    def close(self) -> None:
        """Let go of all clients, which ends the thread."""
        self.clients.clear()
        self.wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)

    # ---- the cells --------------------------------------------------------------------------

    def is_busy(self) -> bool:
        """Whether a cell runs."""
        return bool(self.cells.values())

    def _begin_cell(self, info: object) -> None:
        if self.cells.begins():
            self.cells.begin(info, None)
            self._since = time.monotonic()
        for table in list(self.tables.values()):
            table.topic.cell_began()

    def _end_cell(self, result: object) -> None:
        self.cells.end(result)
        self._since = time.monotonic()
        count = getattr(result, "execution_count", None) or 0
        for table in list(self.tables.values()):
            table.topic.cell_ended(count)
        self.wake()

    # ---- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        events = self.shell.events
        events.register("pre_run_cell", self._begin_cell)
        events.register("post_run_cell", self._end_cell)
        while True:
            self.clients.expire()
            with self._lock:
                if not self.clients.all():
                    self._thread = None
                    self._attend(set())
                    events.unregister("pre_run_cell", self._begin_cell)
                    events.unregister("post_run_cell", self._end_cell)
                    self.cells.clear()
                    return
            self._attend(self.clients.watched())
            wait = self._turn()
            if wait is None or wait > 0:
                self._awake.wait(wait)
            time.sleep(_NAP)
            # News from the time in between is part of the next turn.
            self._awake.clear()

    def _attend(self, watched: set[Name]) -> None:
        """Keep the tables that pages show up to date, and no others."""
        for name in self.tables.keys() - watched:
            table = self.tables.pop(name)
            table.topic.end()
            if table.topic.keeps:
                self._kept[name] = table
        for name in watched - self.tables.keys():
            if name in self._kept:
                table = self._kept.pop(name)
            else:
                table = Table(self.kinds[name](self.shell, self.places))
            table.changed()
            table.topic.changed = self._changed(table)
            table.topic.begin()
            self.tables[name] = table

    def _changed(self, table: Table) -> Callable[[], None]:
        def changed() -> None:
            table.changed()
            self.wake()

        return changed

    def _turn(self) -> float | None:
        """Do what is due; returns the seconds until more is due, or `None` if nothing is."""
        waits = []
        for table in self.tables.values():
            # First, so that a cell that begins after this line interrupts the work.
            table.topic.is_interrupted = False
            wanted = table.wanted(self.is_busy(), self._since)
            if wanted is not None and wanted <= time.monotonic():
                table.refresh()
                wanted = table.again
            if wanted is not None:
                waits.append(wanted)
        if any(self._has_news(client) for client in self.clients.all()):
            batch = self._batch
            due = batch.due(self.is_busy(), self._since)
            if due <= time.monotonic():
                with batch:
                    for client in self.clients.all():
                        self._tell(client)
                # There may be more than fits into one batch.
                due = batch.last + _PERIOD
            waits.append(due)
        return max(0.0, min(waits) - time.monotonic()) if waits else None

    def _has_news(self, client: Client) -> bool:
        known = [(self.tables.get(name), cursor) for name, cursor in client.cursors.items()]
        return any(
            table is not None and table.is_ready and table.topic.table.number != cursor
            for table, cursor in known
        )

    def _tell(self, client: Client) -> None:
        left, told = _MOST_ROWS, list[TopicChanges]()
        cursors = client.cursors
        for name in list(cursors):
            if left <= 0 or name not in self.tables:
                continue
            changes, cursor = self.tables[name].changes(cursors[name], left)
            if changes is not None:
                cursors[name] = cursor
                left -= len(changes.put)
                told.append(TopicChanges(name, *changes))
        if told:
            try:
                client.send(Changes(topics=told))
            except Exception as error:  # the client cannot be reached any more
                self.clients.remove(client)
                report_ignored(error, "in sending to the Perspex panel", client.send)
