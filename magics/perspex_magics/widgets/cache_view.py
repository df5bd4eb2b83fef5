"""`perspex.cache_view()`: the compiled programs of this session, as a table that follows it."""

from __future__ import annotations

from typing import Any

import msgspec
from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.compiling.actions import UNKNOWN, WITH_ONE, clear
from perspex_magics.compiling.cache import CacheMagics, overview, summary
from perspex_magics.compiling.callables import Paths
from perspex_magics.panel.places import Places
from perspex_magics.panel.tables import NOTHING
from perspex_magics.panel.topics.programs import ProgramsTopic, compilation, recorder_of
from perspex_magics.session import find
from perspex_magics.widgets.refusals import Refused
from perspex_magics.widgets.view import View, shell_here, shown

# The newest of them; the panel shows them all.
_MOST_ROWS = 500


class CacheView(View):
    """The widget. It is brought up to date after each cell, and after each request."""

    module = "cache"

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._topic = ProgramsTopic(shell, Places(shell))
        self._topic.begin()
        shell.events.register("post_run_cell", self._look)
        super().__init__(data=self._rows())

    def on_ask(self, message: dict[str, Any]) -> str:
        recorder, what = recorder_of(self._shell), message.get("do")
        if what == "clear":
            done = clear(recorder)
        elif isinstance(what, str) and what in WITH_ONE:
            one = compilation(self._shell, str(message.get("id")))
            done = UNKNOWN if one is None else WITH_ONE[what](recorder, one)
        else:
            raise Refused("Unknown request: pin, unpin or evict a program, or clear all.")
        self._look()
        if not done.ok:
            raise Refused(done.text)
        return done.text

    def _look(self, result: object = None) -> None:
        """Send the page what has changed, also through the panel or a magic."""
        with self._answering:
            self._topic.cell_ended(0)
            rows = self._rows()
            if rows != self.data:
                self.data = rows

    def _rows(self) -> dict[str, Any]:
        self._topic.refresh()
        changes, _ = self._topic.table.changes(NOTHING, self._topic.most)
        rows = changes.put if changes else []
        newest = sorted(rows, key=lambda row: row.order)[-_MOST_ROWS:]
        return {"rows": msgspec.to_builtins(newest), "older": len(rows) - len(newest)}

    def close(self) -> None:
        """Stop following the session."""
        if self._look in self._shell.events.callbacks["post_run_cell"]:
            self._shell.events.unregister("post_run_cell", self._look)
            self._topic.end()
        super().close()

    @property
    def text(self) -> str:
        return repr(overview(recorder_of(self._shell), False, Paths(self._shell.user_ns)))

    @property
    def html(self) -> str:
        return overview(recorder_of(self._shell), False, Paths(self._shell.user_ns))._repr_html_()


def cache_view() -> CacheView | None:
    """A table of the programs compiled in this session, with the time of each stage.

    For a recompiled program it shows what differed from the earlier ones, and how to avoid that.

    Returns:
      A widget. Outside of Jupyter, `None`, after printing the same as text.
    """
    shell = shell_here()
    if shell is None or find(shell, CacheMagics) is None:
        # Without the extension there is no record, but the cache itself counts.
        print("\n".join(summary()))
        return None
    return shown(CacheView(shell))
