"""How what several engines give is shown: process 0 in full, the others folded, an error once."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence

from IPython.display import HTML, publish_display_data

from perspex_magics.cluster.engines import Failure, Told
from perspex_magics.display.markup import MONO, MUTED, joined, tag

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class SpmdError(RuntimeError):
    """A cell failed on some of the engines."""


class First:
    """The outputs of process 0, shown as they come."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}
        self.displayed = 0

    def show(self, told: Told) -> None:
        """Show what is new."""
        displays = [o for o in told.outputs if o["output_type"] != "stream"]
        for output in told.outputs:
            if output["output_type"] == "stream":
                before = self.shown.get(output["name"], 0)
                if len(output["text"]) > before:
                    self._print(output["name"], output["text"][before:])
                    self.shown[output["name"]] = len(output["text"])
        for output in displays[self.displayed :]:
            publish_display_data(output["data"])
        self.displayed = len(displays)

    def _print(self, name: str, text: str) -> None:
        print(text, end="", file=sys.stderr if name == "stderr" else sys.stdout, flush=True)


def text_of(told: Told) -> str:
    """The outputs of an engine as text."""
    parts = [
        o["text"] if o["output_type"] == "stream" else o["data"].get("text/plain", "") + "\n"
        for o in told.outputs
    ]
    return "".join(parts)


class Folded(HTML):
    """Texts, each below a title and folded; where there is no markup, only their titles."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        parts = [
            tag(
                "details",
                tag("summary", title, style=MUTED),
                tag("pre", _ANSI.sub("", text), style=MONO),
            )
            for title, text in texts.items()
        ]
        super().__init__(str(joined(parts)))
        self.titles = list(texts)

    def __repr__(self) -> str:
        return "\n".join([f"[{title}]" for title in self.titles])


def folded(others: Sequence[Told]) -> Folded | None:
    """The outputs of these processes; those that are the same together."""
    texts: dict[str, list[int]] = {}
    for told in others:
        if text := text_of(told):
            texts.setdefault(text, []).append(told.process)
    if not texts:
        return None
    return Folded({f"{numbers(those)}: {_lines(text)}": text for text, those in texts.items()})


def _lines(text: str) -> str:
    count = len(text.splitlines())
    return f"{count} line{'s' * (count != 1)}"


def numbers(processes: Sequence[int]) -> str:
    """`process 1`, or `processes 1-3, 5`."""
    runs: list[list[int]] = []
    for process in sorted(processes):
        if runs and process == runs[-1][-1] + 1:
            runs[-1].append(process)
        else:
            runs.append([process])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"process{'es' * (len(processes) > 1)} {', '.join(texts)}"


def failure(
    found: Sequence[Told], names: Callable[[list[int]], str]
) -> tuple[BaseException | None, Folded | None]:
    """The error of a cell, and the traceback of the first process that has one.

    It says which engines have died first, and then each kind of error once.
    """
    dead = [told.process for told in found if told.is_dead]
    running = [told.process for told in found if told.is_unfinished and not told.is_dead]
    kinds: dict[str, list[tuple[Told, Failure]]] = {}
    for told in found:
        if told.error is not None and not told.is_dead:
            kinds.setdefault(told.error.name, []).append((told, told.error))
    parts = [f"{names(dead)} died while it ran the cell; run %cluster restart"] if dead else []
    if running:
        parts.append(f"{names(running)} still runs the cell; run %cluster restart")
    if not parts and list(kinds) == ["KeyboardInterrupt"]:
        return KeyboardInterrupt(), None
    for name, those in kinds.items():
        where = numbers([told.process for told, _ in those])
        parts.append(f"{name} on {where}: {those[0][1].text}")
    if not parts:
        return None, None
    firsts = [those[0] for those in kinds.values()]
    shown = {f"traceback of process {told.process}": error.traceback for told, error in firsts}
    return SpmdError("\n".join(parts)), Folded(shown) if shown else None
