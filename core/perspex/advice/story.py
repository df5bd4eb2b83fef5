"""What an error knows of a traced value: its way from the arguments, and what to write instead.

Everything here is text. A message outlives the trace that it is about, and must keep no array and
no program alive.
"""

from __future__ import annotations

import json
import textwrap
import threading
import weakref
from typing import Any, NamedTuple

from perspex.base import source

WAY = "From the arguments to here:"
"""What stands above the steps in the text of a story."""


class Step(NamedTuple):
    """A line on the way of a value: where, its text, the last operation on it, the result's type.

    The step of an argument has no line: `text` is its name, and `where` its function.
    """

    where: str
    text: str
    operation: str
    kind: str


class Argument(NamedTuple):
    """An argument from which a value comes.

    `is_number` says that it was a Python number, and `is_whole` that it is not part of a container:
    such an argument may be marked static.
    """

    name: str
    kind: str
    is_number: bool = False
    is_whole: bool = False


class Story(NamedTuple):
    """Where a traced value comes from.

    `jitted` refers to what traced the function, if that is a `jit` which nothing else is tracing:
    then its arguments may be marked static. It is the only thing here that is no text. `files`
    are those of the lines on the way and of the function. The value `is_constant` if it depends on
    nothing that the function is given: no argument, no traced value from outside, no named axis. It
    `is_differentiated` where a derivative is being taken around the line that failed, and
    `is_staged` if it is written down: in a `jit`, a loop or the like, and not computed at once.
    """

    function: str
    steps: tuple[Step, ...]
    left_out: int = 0
    arguments: tuple[Argument, ...] = ()
    jitted: weakref.ref[Any] | None = None
    files: tuple[str, ...] = ()
    is_constant: bool = False
    is_differentiated: bool = False
    is_staged: bool = True

    @property
    def can_be_static(self) -> bool:
        """Whether the value would be known if the arguments that it comes from were static."""
        found = self.arguments
        return (
            self.jitted is not None
            and bool(found)
            and all(a.is_number and a.is_whole for a in found)
        )

    @property
    def is_of_integers(self) -> bool:
        """Whether the value comes from integers alone, on which Python likes to depend."""
        return all(argument.kind.startswith(("int", "uint")) for argument in self.arguments)

    @property
    def is_of_booleans(self) -> bool:
        """Whether the value comes from booleans alone, as switches are."""
        kinds = [argument.kind for argument in self.arguments]
        return bool(kinds) and all(kind.startswith("bool") for kind in kinds)


class Patch(NamedTuple):
    """Lines of a file, `first` to `last`, and what to write there; `imports` go to the top."""

    file: str
    first: int
    last: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    imports: tuple[str, ...] = ()


class Remedy(NamedTuple):
    """What to do: a sentence, the lines to write if they are known, and another way, if any.

    `static` are the arguments that it marks static. It `is_loop` if it repeats on the device.
    """

    text: str
    patch: Patch | None = None
    otherwise: str = ""
    static: tuple[str, ...] = ()
    is_loop: bool = False

    def as_data(self) -> dict[str, Any]:
        """What displays show of it."""
        patch = self.patch and self.patch._asdict()
        return {"text": self.text, "patch": patch, "otherwise": self.otherwise}


class Card(NamedTuple):
    """An error in parts, for displays. The message says the same as text."""

    headline: str
    origin: str
    why: str
    remedy: Remedy
    place: str = ""
    steps: tuple[Step, ...] = ()
    left_out: int = 0

    def as_data(self) -> dict[str, Any]:
        """The card as JSON."""
        parts = {"remedy": self.remedy.as_data(), "steps": [step._asdict() for step in self.steps]}
        data: dict[str, Any] = json.loads(json.dumps(self._asdict() | parts))
        return data


class Message(str):
    """The text of an error, with the card that says the same."""

    card: Card

    def __new__(cls, text: str, card: Card | None = None) -> Message:
        message = super().__new__(cls, text)
        if card is not None:
            message.card = card
        return message


class _Told(threading.local):
    text: str = ""
    story: Story | None = None


_told = _Told()


def remember(text: str, story: Story) -> None:
    """Keep the story of `text` until a message with that text is composed.

    The text passes through the traces between, which put sentences of theirs before it.
    """
    _told.text, _told.story = text, story


def recall(origin: str) -> Story | None:
    """The story that an error's origin tells, if it was the last one told on this thread."""
    text, story = _told.text, _told.story
    _told.text, _told.story = "", None
    if story is None or not text or not origin.endswith(text):
        return None
    # What stands before it says that the value is an example of a batch.
    return story if origin == text else story._replace(jitted=None)


def forbid_static() -> None:
    """Note on the last story that marking its arguments static would not help."""
    if _told.story is not None:
        _told.story = _told.story._replace(jitted=None)


def remedy_lines(remedy: Remedy) -> list[str]:
    """A remedy as lines of text."""
    patch = remedy.patch
    other = f"Or {remedy.otherwise}." if remedy.otherwise else ""
    if patch is None:
        if not remedy.text:
            return []
        return [f"Remedy: {remedy.text}".rstrip(".") + ".", other]
    lines = source.line_name(patch.file, patch.first)
    if patch.last > patch.first:
        lines += f" to {patch.last}"
    code = textwrap.indent(textwrap.dedent("\n".join(patch.after)), "    ")
    return [f"Remedy: {remedy.text}. Instead of {lines}:", code, imports_told(patch), other]


def imports_told(patch: Patch) -> str:
    """A sentence on the imports that a patch needs; empty if it needs none."""
    listed = " and ".join([f"`{line}`" for line in patch.imports])
    return f"This needs {listed}." if listed else ""
