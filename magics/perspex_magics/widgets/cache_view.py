"""`perspex.cache_view()`: the programs of this session, as a table that follows it."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from perspex_magics.compiling.actions import UNKNOWN, WITH_ONE, clear
from perspex_magics.compiling.cache import CacheMagics, overview, summary
from perspex_magics.panel.places import Places
from perspex_magics.panel.tables import NOTHING
from perspex_magics.panel.topics.programs import ProgramsTopic, compilation, recorder_of
from perspex_magics.widgets.refusals import Refused
from perspex_magics.widgets.view import View, shell_here, shown

# The newest of them; the panel shows them all.
_MOST_ROWS = 500


class CacheView(View, entry="cache_widget.js"):
    """The widget. It looks again at the end of each cell, and when something is asked of it."""

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
            raise Refused("Programs can be pinned, unpinned and evicted, and all be cleared.")
        self._look()
        if not done.ok:
            raise Refused(done.text)
        return done.text

    def _look(self, result: object = None) -> None:
        """Tell the page what has changed, also by the panel or a magic."""
        with self._answering:
            self._topic.cell_ended(0)
            rows = self._rows()
            if rows != self.data:
                self.data = rows

    def _rows(self) -> dict[str, Any]:
        self._topic.refresh()
        changes, _ = self._topic.table.changes(NOTHING, self._topic.most)
        rows = changes["put"] if changes else []
        newest = sorted(rows, key=lambda row: int(row["order"]))[-_MOST_ROWS:]
        return {"rows": newest, "older": len(rows) - len(newest)}

    def close(self) -> None:
        """Follow the session no longer."""
        if self._look in self._shell.events.callbacks["post_run_cell"]:
            self._shell.events.unregister("post_run_cell", self._look)
            self._topic.end()
        super().close()

    @property
    def text(self) -> str:
        return repr(overview(recorder_of(self._shell), False))

    @property
    def html(self) -> str:
        return overview(recorder_of(self._shell), False)._repr_html_()


def cache_view() -> CacheView | None:
    """See what was compiled in this session, what each stage took, and why it was needed again.

    Returns:
      A widget; outside of Jupyter its text is printed, and nothing is returned.
    """
    shell = shell_here()
    if shell is None or CacheMagics.__name__ not in shell.magics_manager.registry:
        # Nobody has kept a record; the cache itself counts.
        print("\n".join(summary()))
        return None
    return shown(CacheView(shell))
