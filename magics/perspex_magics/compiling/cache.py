"""`%cache`: which programs were compiled, and which were found in memory or on disk."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from IPython.core.completer import CompletionContext
from IPython.core.error import UsageError
from IPython.display import display

from perspex import config
from perspex.base import events, source
from perspex.runtime.compiler import cache, compiling, disk, pressure
from perspex_magics.compiling.callables import Paths
from perspex_magics.compiling.compilations import (
    Compilation,
    Recorder,
)
from perspex_magics.compiling.exactness import tell_of_rounding
from perspex_magics.compiling.storms import tell_of_storms
from perspex_magics.display.markup import MONO, shortened
from perspex_magics.display.table import Column, Report, Table
from perspex_magics.display.units import count, duration, many, size
from perspex_magics.notebook.magic import Magic
from perspex_magics.notebook.options import WordParser
from perspex_magics.session import Session

_ROWS = 30
_COLUMNS = (
    Column("name", "function", lambda name: shortened(name, 48)),
    Column("signature", "types", lambda types: shortened(types, 80)),
    Column("found", "from"),
    Column("trace", "trace", duration, is_number=True),
    Column("lower", "lower", duration, is_number=True),
    Column("compile", "compile", duration, is_number=True),
    Column("by_xla", "XLA took", duration, is_number=True),
    Column("bytes", "size", size, is_number=True),
)
_FROM = {
    "xla": "compiled by XLA",
    "memory": "found in memory",
    "disk": "loaded from disk",
}
# Seconds to wait for entries that are just being written, before they are removed.
_PATIENCE = 10.0


class _CacheParser(WordParser):
    def parse(self, line: str) -> argparse.Namespace:
        options = super().parse(line)
        if options.disk and options.what != "clear":
            self.error("--disk is an option of `%cache clear` only")
        if options.all and options.what is not None:
            self.error("--all takes no name")
        return options


parser = _CacheParser(
    "cache",
    """Show the programs of this session: compiled by XLA, or found in memory or on disk.

With the name of a function, explain each of its programs. `clear` removes programs from
memory.""",
    """A function that is defined again or moved to another cell keeps its program as long as
it computes the same. Programs that call Python functions are compiled every time.

    %cache
    %cache step
    %cache clear --disk""",
    usage="%cache [--all] [--help] [NAME | clear [--disk]]",
)
parser.add_argument("what", nargs="?", metavar="NAME", help="a function, or `clear`")
parser.add_argument(
    "--all", action="store_true", help=f"list all programs instead of the {_ROWS} that took longest"
)
parser.add_argument(
    "--disk", action="store_true", help="with `clear`: remove the programs on disk as well"
)


# ---- texts --------------------------------------------------------------------------------------


def overview(recorder: Recorder, everything: bool, paths: Paths) -> Report:
    """The programs of this session; of very many, those that took longest."""
    found = list(recorder.done)
    sentences = summary()
    if not everything and len(found) > _ROWS:
        longest = sorted(found, key=lambda one: one.seconds, reverse=True)[:_ROWS]
        chosen = set(map(id, longest))
        sentences.append(
            f"The {_ROWS} of {count(len(found))} programs that took longest; "
            "`%cache --all` lists all."
        )
        found = [one for one in found if id(one) in chosen]
    rows = [[_value(one, column.key, paths) for column in _COLUMNS] for one in found]
    table = Table(_COLUMNS, rows, caption="compiled programs", style=f"{MONO};font-size:90%")
    return Report(*sentences, "", table, scrolls=True)


def _value(one: Compilation, key: str, paths: Paths) -> Any:
    return one.called(paths) if key == "name" else getattr(one, key)


def summary() -> list[str]:
    """Hits and misses in memory and on disk, and the folder on disk."""
    counts = cache.counts
    looked = counts.xla + counts.disk
    said = [
        f"memory: {_looks(counts.memory, looked)}; "
        f"{many(cache.remembered_count(), 'program')} kept.",
    ]
    if counts.callbacks:
        uncached = many(counts.callbacks, "program")
        said.append(f"not cached, because they call Python functions: {uncached}.")
    if counts.apart:
        apart = many(counts.apart, "program")
        said.append(f"compiled in a separate process, which an interrupt stops: {apart}.")
    policy = disk.policy()
    if policy is None:
        return [*said, *_why_not(), *_troubles()]
    kept = policy.folder.files()
    limit = "no limit" if policy.limit is None else f"at most {size(policy.limit)}"
    said.append(
        f"disk: {_looks(counts.disk, counts.xla)}; "
        f"{many(disk.counts.written, 'program')} written by this session."
    )
    said.append(
        f"{policy.folder.path}: {many(len(kept), 'program')}, "
        f"{size(sum(file.size for file in kept))} ({limit})."
    )
    if disk.counts.unwritable:
        unwritten = many(disk.counts.unwritable, "program")
        said.append(f"not written, because XLA cannot serialize them: {unwritten}.")
    if disk.counts.damaged:
        said.append(f"{many(disk.counts.damaged, 'damaged entry', 'damaged entries')} removed.")
    return said + _troubles()


def _why_not() -> list[str]:
    if config.compilation_cache_dir.value is None:
        return ["disk: off. Set the flag `compilation_cache_dir` to a folder to turn it on."]
    if not config.enable_compilation_cache.value:
        return ["disk: off, because the flag `enable_compilation_cache` is off."]
    if config.compilation_cache_max_size.value == 0:
        return ["disk: off, because the flag `compilation_cache_max_size` is 0."]
    return []


def _troubles() -> list[str]:
    known = [*disk.problems.values(), *([compiling.problem] if compiling.problem else [])]
    return [f"problem: {text}" for text in known]


def _looks(hits: int, misses: int) -> str:
    return f"{many(hits, 'hit')}, {many(misses, 'miss', 'misses')}"


def explanation(name: str, found: Sequence[Compilation]) -> Report:
    """Each time a function needed a program: for which types, where, and what it took."""
    said = [f"`{name}` needed a program {many(len(found), 'time')}:"]
    for i, one in enumerate(found, 1):
        said.append(f"{i}. ({one.signature}), {source.summary(one.at)}: {_story(one)}.")
    return Report(*said)


def _story(one: Compilation) -> str:
    steps = []
    if one.trace is not None:
        steps.append(f"traced in {duration(one.trace)}")
    if one.lower is not None:
        steps.append(f"lowered in {duration(one.lower)}")
    found = _FROM[one.found] + (" in a separate process" if one.apart else "")
    step = f"{found} in {duration(one.compile)}"
    if one.found != "xla":
        step += f", where XLA took {duration(one.by_xla)}"
    steps.append(step)
    if not one.key:
        steps.append("not cached, because it calls Python functions")
    elif one.bytes is not None:
        steps.append(f"{size(one.bytes)} on disk")
    return ", ".join(steps)


def forget(recorder: Recorder) -> int:
    """Empty the memory, pinned programs included, and the record; returns how many there were."""
    before = cache.remembered_count()
    cache.unpin()
    pressure.forget()
    recorder.done.clear()
    return before


def clear(recorder: Recorder, on_disk: bool) -> Report:
    """Remove programs from memory, and from disk if asked; the next calls compile again."""
    policy = disk.policy() if on_disk else None
    if on_disk and policy is None:
        why = " ".join([*_why_not(), *_troubles()])
        raise UsageError(f"%cache: there is no folder to clear ({why})")
    said = [f"Removed {many(forget(recorder), 'program')} from memory."]
    if policy is not None:
        disk.flush(_PATIENCE)
        removed = policy.folder.clear()
        said.append(f"Removed {many(removed, 'program')} from {policy.folder.path}.")
    return Report(*said)


# ---- the magic ----------------------------------------------------------------------------------


class CacheMagics(Magic):
    """Show the programs of this session; `%cache --help` lists the options."""

    line_parser = parser

    def __init__(self, session: Session, recorder: Recorder) -> None:
        super().__init__(session)
        self.recorder = recorder

    def completions(self, rest: str, context: CompletionContext) -> list[str] | None:
        given = rest.split()
        if "clear" in given:
            words = ["--disk"]
        else:
            words = ["--all", "--help"]
            if not given:
                words += ["clear", *filter(str.isidentifier, self.recorder.names())]
        return [word for word in words if word not in given]

    def on_line(self, options: argparse.Namespace, local_ns: dict[str, Any] | None) -> None:
        if options.what is None:
            display(overview(self.recorder, options.all, Paths(self.shell.user_ns)))
        elif options.what == "clear":
            display(clear(self.recorder, options.disk))
        else:
            display(self._explain(options.what))

    def _explain(self, name: str) -> Report:
        # A variable may hold a function of another name.
        value = self.shell.user_ns.get(name)
        found = self.recorder.named({name, getattr(value, "__name__", name)})
        if not found:
            raise UsageError(
                f"%cache: no program of `{name}` has been compiled in this session; "
                "`%cache --all` lists those that were"
            )
        return explanation(name, found)


def follow_compilations(session: Session) -> None:
    """Bring `%cache` into a notebook, and record what is compiled from now on."""
    recorder = session.keep(Recorder())
    session.on_unload(events.subscribe(recorder, recorder.kinds))
    CacheMagics(session, recorder).register()
    tell_of_storms(session, recorder)
    tell_of_rounding(session, recorder)
