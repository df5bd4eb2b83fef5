"""Files that a function read while it was traced: the program keeps what was in them.

As a cell begins and ends, the time and size of each file are compared, and where they differ its
bytes. What to do about a change is decided where that is decided for variables
(`perspex.jitted.stale`).
"""

from __future__ import annotations

import hashlib
import os
import weakref
from typing import Any, NamedTuple

from perspex.base import source
from perspex.jitted import stale
from perspex.jitted.stale import Change, Traced
from perspex_magics.display import units
from perspex_magics.notebook.kinds import is_a
from perspex_magics.session import Session

# Of larger files only time and size are compared.
_MOST_BYTES = 1 << 24
# So many bytes are shown as they are, if they are text.
_SHOWN = 40


class Content(NamedTuple):
    """What is known of a file: its time and size, a digest of its bytes, and these as a text."""

    stamp: tuple[int, int]
    digest: bytes
    text: str


def content_of(path: str) -> Content:
    """The content of a file as it is now; also of one that is not there."""
    try:
        stamp = _stamp(path)
        if stamp[1] > _MOST_BYTES:
            return Content(stamp, repr(stamp).encode(), units.size(stamp[1]))
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return Content((0, -1), b"", "not there")
    digest = hashlib.blake2b(data, digest_size=8)
    text = f"{units.size(len(data))} ({digest.hexdigest()[:6]})"
    if len(data) <= _SHOWN and data.isascii() and data.decode().strip().isprintable():
        text = repr(data.decode().strip())
    return Content(stamp, digest.digest(), text)


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


def path_read(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """The file that a call reads; `None` if it writes, or if that cannot be told."""
    owner: Any = getattr(function, "__self__", None)
    is_method = is_a(owner, os.PathLike)
    path: Any = owner if is_method else args[0] if args else named.get("file")
    rest = args if is_method else args[1:]
    mode = named.get("mode", rest[0] if rest and function.__name__.endswith("open") else "r")
    if not is_a(path, str | os.PathLike) or (is_a(mode, str) and not mode.startswith("r")):
        return None
    return os.path.abspath(os.fspath(path))


class Files:
    """The files that the functions of one notebook have read while they were traced."""

    def __init__(self) -> None:
        # Those of traces that are not over, with the name of the traced function.
        self.read: list[tuple[str, str, Content]] = []
        self.records: weakref.WeakSet[FileRecord] = weakref.WeakSet()

    def note(self, function: str, path: str) -> str:
        """Note that a traced function reads a file; returns what is in it, as a text."""
        content = content_of(path)
        self.read.append((function, path, content))
        return content.text

    def __call__(self, traced: Traced) -> FileRecord | None:
        """The record of a program that has just been traced: what the core asks an observer."""
        found = {path: content for name, path, content in self.read if name == traced.name}
        if not found:
            return None
        self.read = [each for each in self.read if each[0] != traced.name]
        record = FileRecord(traced, found)
        self.records.add(record)
        return record

    def look(self, event: Any) -> None:
        """Find the programs whose files have changed, as a cell begins or ends."""
        if not self.records:
            return
        for record in list(self.records):
            traced = record.traced()
            if traced is not None and record.is_touched():
                stale.settle(traced)


class FileRecord:
    """The files that one program has read."""

    def __init__(self, traced: Traced, contents: dict[str, Content]) -> None:
        self.traced = weakref.ref(traced)
        self.traced_at = "" if traced.at is None else source.summary(traced.at)
        self.contents = contents
        self.stamps = {path: content.stamp for path, content in contents.items()}
        self.unsure = False

    def is_touched(self) -> bool:
        """Whether a file has another time or size than at the last look."""
        before = self.stamps
        self.stamps = {}
        for path in before:
            try:
                self.stamps[path] = _stamp(path)
            except OSError:
                self.stamps[path] = 0, -1
        return self.stamps != before

    def changes(self, wait: bool) -> list[Change]:
        """The files that hold something else than what was read."""
        found = []
        for path, content in self.contents.items():
            now = content_of(path)
            if now.digest != content.digest:
                name = os.path.relpath(path)
                shown = path if name.startswith("..") else name
                found.append(Change(shown, content.text, now.text, "", self.traced_at))
        return found


def watch_files(session: Session) -> Files:
    """Have programs go stale with the files that they read while they were traced."""
    files = Files()
    session.on_unload(stale.observe(files))
    session.on_cell(files.look, files.look)
    return files
