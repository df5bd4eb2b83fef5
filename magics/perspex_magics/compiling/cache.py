"""`%cache`: what was compiled, what was found in memory or on disk instead, and where that is."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.display import display

from perspex import config
from perspex.base import events, source
from perspex.runtime.compiler import cache, compiling, disk, pressure
from perspex_magics.compiling.compilations import (
    Compilation,
    Recorder,
    milliseconds,
    size_text,
    table,
)
from perspex_magics.display.markup import LINE, MONO, MUTED, escape, tag
from perspex_magics.notebook.options import MagicParser

_ROWS = 30
_HEAD = ("function", "types", "from", "trace", "lower", "compile", "XLA took", "size")
_TEXTS = 3  # the first columns are texts, the others numbers
_FROM = {
    "xla": "compiled by XLA",
    "memory": "found in memory",
    "disk": "loaded from disk",
}
# Seconds to wait for entries that are just being written, before they are removed.
_PATIENCE = 10.0


class _CacheParser(MagicParser):
    sign = "%"

    def parse(self, line: str) -> argparse.Namespace:
        options = super().parse(line)
        if options.disk and options.what != "clear":
            self.error("--disk belongs to `%cache clear`")
        if options.all and options.what is not None:
            self.error("--all goes without a name")
        return options


parser = _CacheParser(
    "cache",
    """Show what was compiled in this session, and what was found in memory or on disk instead.

With the name of a function, explain its programs one by one. `clear` forgets them.""",
    """A function that is defined again, or moved to another cell, is the same program as long as
it computes the same. Programs that call back into Python are always compiled.

    %cache
    %cache step
    %cache clear --disk""",
    usage="%cache [--all] [--help] [NAME | clear [--disk]]",
)
parser.add_argument("what", nargs="?", metavar="NAME", help="a function, or `clear`")
parser.add_argument(
    "--all", action="store_true", help=f"list all programs, and not the {_ROWS} that took longest"
)
parser.add_argument(
    "--disk", action="store_true", help="with `clear`: remove the programs on disk, too"
)


class Report:
    """Sentences, and a table below them."""

    def __init__(
        self, sentences: Sequence[str], head: Sequence[str] = (), rows: Iterable[Any] = ()
    ) -> None:
        self.sentences, self.head, self.rows = sentences, head, list(rows)

    def __repr__(self) -> str:
        lines = list(self.sentences)
        if self.rows:
            cells = [self.head, *self.rows]
            widths = [max(len(row[i]) for row in cells) for i in range(len(self.head))]
            lines.append("")
            lines += [_line(row, widths).rstrip() for row in cells]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        said = [tag("div", escape(sentence), style=MUTED) for sentence in self.sentences]
        if not self.rows:
            return tag("div", *said)
        head = [
            tag("th", escape(title), style=_style(i), scope="col")
            for i, title in enumerate(self.head)
        ]
        body = [
            tag("tr", *[tag("td", escape(cell), style=_style(i)) for i, cell in enumerate(row)])
            for row in self.rows
        ]
        caption = tag("caption", escape("compiled programs; times in ms"), style=MUTED)
        style = f"{MONO};border-collapse:collapse;font-size:90%"
        return tag(
            "div",
            *said,
            tag("table", caption, tag("tr", *head), *body, style=style),
            style="max-height:40em;overflow:auto",
            tabindex="0",
        )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        cell.ljust(width) if i < _TEXTS else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    )


def _style(column: int) -> str:
    side = "left" if column < _TEXTS else "right"
    return f"text-align:{side};padding:1px 10px 1px 0;border-bottom:1px solid {LINE}"


# ---- what is said -------------------------------------------------------------------------------


def overview(recorder: Recorder, everything: bool) -> Report:
    """All that was compiled in this session, the longest first if it is too much."""
    found = list(recorder.done)
    sentences = summary()
    if not everything and len(found) > _ROWS:
        longest = sorted(found, key=lambda one: one.seconds, reverse=True)[:_ROWS]
        chosen = set(map(id, longest))
        sentences.append(
            f"The {_ROWS} of {len(found)} programs that took longest; `%cache --all` lists all."
        )
        found = [one for one in found if id(one) in chosen]
    return Report(sentences, _HEAD, table(found))


def summary() -> list[str]:
    """Hits and misses of both layers, and where the second one is."""
    counts = cache.counts
    looked = counts.xla + counts.disk
    said = [
        f"memory: {_looks(counts.memory, looked)}; "
        f"{_many(cache.remembered_count(), 'program')} kept.",
    ]
    if counts.callbacks:
        said.append(
            "programs that call Python functions are never kept: "
            f"{_many(counts.callbacks, 'program')}."
        )
    if counts.apart:
        said.append(
            f"{_many(counts.apart, 'program')} compiled in a process of its own, "
            "which an interrupt ends."
        )
    policy = disk.policy()
    if policy is None:
        return [*said, *_why_not(), *_troubles()]
    kept = policy.folder.files()
    limit = "no limit" if policy.limit is None else f"at most {size_text(policy.limit)}"
    said.append(
        f"disk: {_looks(counts.disk, counts.xla)}; "
        f"{_many(disk.counts.written, 'program')} written by this session."
    )
    said.append(
        f"{policy.folder.path}: {_many(len(kept), 'program')}, "
        f"{size_text(sum(file.size for file in kept))} ({limit})."
    )
    if disk.counts.unwritable:
        said.append(f"{_many(disk.counts.unwritable, 'program')} that XLA cannot write down.")
    if disk.counts.damaged:
        said.append(f"{_many(disk.counts.damaged, 'damaged entry', 'damaged entries')} removed.")
    return said + _troubles()


def _why_not() -> list[str]:
    if config.compilation_cache_dir.value is None:
        return ["disk: off; the flag `compilation_cache_dir` names a folder for it."]
    if not config.enable_compilation_cache.value:
        return ["disk: off by the flag `enable_compilation_cache`."]
    if config.compilation_cache_max_size.value == 0:
        return ["disk: off, because the flag `compilation_cache_max_size` is 0."]
    return []


def _troubles() -> list[str]:
    known = [*disk.problems.values(), *([compiling.problem] if compiling.problem else [])]
    return [f"trouble: {text}" for text in known]


def _looks(hits: int, misses: int) -> str:
    return f"{_many(hits, 'hit')}, {_many(misses, 'miss', 'misses')}"


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def explanation(name: str, found: Sequence[Compilation]) -> Report:
    """Each time a program of one function was needed: for what, where, and what it took."""
    said = [f"`{name}`, {_many(len(found), 'time')}:"]
    for i, one in enumerate(found, 1):
        said.append(f"{i}. ({one.signature}), {source.summary(one.at)}: {_story(one)}.")
    return Report(said)


def _story(one: Compilation) -> str:
    steps = []
    if one.trace is not None:
        steps.append(f"traced in {milliseconds(one.trace)} ms")
    if one.lower is not None:
        steps.append(f"lowered in {milliseconds(one.lower)} ms")
    found = _FROM[one.found] + (" in a process of its own" if one.apart else "")
    step = f"{found} in {milliseconds(one.compile)} ms"
    if one.found != "xla":
        step += f", where XLA took {milliseconds(one.by_xla)} ms"
    steps.append(step)
    if not one.key:
        steps.append("never kept, because it calls Python functions")
    elif one.bytes is not None:
        steps.append(f"{size_text(one.bytes)} on disk")
    return ", ".join(steps)


def forget(recorder: Recorder) -> int:
    """Forget what is in memory, pinned or not, and the record; returns how many programs it was."""
    count = cache.remembered_count()
    cache.unpin()
    pressure.forget()
    recorder.done.clear()
    return count


def clear(recorder: Recorder, on_disk: bool) -> Report:
    """Forget what was compiled; functions compile again when they are called again."""
    policy = disk.policy() if on_disk else None
    if on_disk and policy is None:
        why = " ".join([*_why_not(), *_troubles()])
        raise UsageError(f"%cache: there is no folder to clear ({why})")
    said = [f"Forgot {_many(forget(recorder), 'program')} in memory."]
    if policy is not None:
        disk.flush(_PATIENCE)
        removed = policy.folder.clear()
        said.append(f"Removed {_many(removed, 'program')} from {policy.folder.path}.")
    return Report(said)


# ---- the magic ----------------------------------------------------------------------------------


@magics_class
class CacheMagics(Magics):
    """`%cache`."""

    def __init__(self, shell: InteractiveShell, recorder: Recorder) -> None:
        super().__init__(shell)
        self.recorder = recorder

    @no_var_expand
    @line_magic
    def cache(self, line: str) -> None:
        """Show what was compiled, and what was found instead; `%cache --help` tells more."""
        options = parser.parse(line)
        if options.help:
            print(parser.format_help())
        elif options.what is None:
            display(overview(self.recorder, options.all))
        elif options.what == "clear":
            display(clear(self.recorder, options.disk))
        else:
            display(self._explain(options.what))

    def _explain(self, name: str) -> Report:
        assert self.shell is not None
        # A variable may hold a function of another name.
        value = self.shell.user_ns.get(name)
        found = self.recorder.named({name, getattr(value, "__name__", name)})
        if not found:
            raise UsageError(
                f"%cache: no program of `{name}` has been compiled in this session; "
                "`%cache --all` lists those that were"
            )
        return explanation(name, found)


def follow_compilations(shell: InteractiveShell) -> Callable[[], object]:
    """Bring `%cache` into a shell, and record what is compiled from now on; returns the undo."""
    recorder = Recorder()
    stop = events.subscribe(recorder, recorder.kinds)
    shell.register_magics(CacheMagics(shell, recorder))
    matcher = _matcher(recorder)
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(matcher)

    def undo() -> None:
        stop()
        shell.magics_manager.magics["line"].pop(parser.magic, None)
        if shell.Completer is not None:
            shell.Completer.custom_matchers.remove(matcher)

    return undo


_LINE = re.compile(r"\s*%cache\s+(?:.*\s)?")


def _matcher(recorder: Recorder) -> Any:
    """Completes options, `clear`, and the functions that were compiled."""

    @context_matcher(identifier="perspex_cache")  # type: ignore[untyped-decorator]
    def match_cache(context: CompletionContext) -> SimpleMatcherResult:
        line = context.text_until_cursor.removesuffix(context.token)
        if not _LINE.fullmatch(line):
            return {"completions": []}
        given = line.split()[1:]
        if "clear" in given:
            words = ["--disk"]
        else:
            words = ["--all", "--help"] if given else ["--all", "--help", "clear"]
            words += [] if given else [name for name in recorder.names() if name.isidentifier()]
        return {
            "completions": [
                SimpleCompletion(word, type="option")
                for word in words
                if word.startswith(context.token) and word not in given
            ],
            "suppress": True,
        }

    return match_cache
