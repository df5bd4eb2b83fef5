"""What the kernel and its views say to each other, as types: the contract of panel and widgets.

`schema` makes `schema.json` from these types, and `contract.ts` from the schema, both by `make
panel`, so that each name is written once. Times are in seconds, sizes in bytes, and lines count
from 1.

The messages are here, the rows of tables in `rows`, programs in `written`, and what widgets show in
`widgets`. The four import nothing else of Perspex: the build imports them by themselves.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from .rows import AnyRow
from .written import Compiled, Program

TARGET = "perspex.panel"
VERSION = 1

Topic = Literal[
    "programs",
    "cells",
    "buffers",
    "memory",
    "keys",
    "lines",
    "devices",
    "placements",
    "exchanges",
    "engines",
    "badges",
]
TOPICS: tuple[Topic, ...] = get_args(Topic)

# ---- from the panel -----------------------------------------------------------------------------


class Open(Struct, frozen=True, forbid_unknown_fields=True):
    """The data of `comm_open`.

    A page keeps `client` when it is reloaded, so that its new comm takes the place of the old one.
    """

    version: int
    client: Annotated[str, Meta(min_length=1, max_length=64)]
    topics: list[Topic]


class _Said(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """A message after `comm_open`."""


class Watch(_Said, frozen=True, tag="watch"):
    """From now on the page shows these topics; a snapshot of each new one follows."""

    topics: list[Topic]


class Resync(_Said, frozen=True, tag="resync"):
    """A message number was missing: send snapshots of all topics that are shown."""


class _Ask(Struct, frozen=True, forbid_unknown_fields=True, tag_field="what"):
    """A request; a `Reply` with the same `request` answers it."""

    type: Literal["ask"]
    request: int


class _AskAbout(_Ask, frozen=True):
    id: Annotated[str, Meta(max_length=1000, description="The id of a row.")]


class AskProgram(_AskAbout, frozen=True, tag="program"):
    """Send the document of a program, without the parts that `AskCompiled` gives."""


class AskCompiled(_AskAbout, frozen=True, tag="compiled"):
    """Send what a program is lowered and compiled to."""


class AskEvict(_AskAbout, frozen=True, tag="evict"):
    """Evict a program from the cache."""


class AskPin(_AskAbout, frozen=True, tag="pin"):
    """Keep a program in memory."""


class AskUnpin(_AskAbout, frozen=True, tag="unpin"):
    """Let a program go when others need its place."""


class AskClear(_Ask, frozen=True, tag="clear"):
    """Evict all programs."""


class AskFree(_AskAbout, frozen=True, tag="free"):
    """Free the buffers of the variable with this row in `buffers`."""


class AskProfile(_Ask, frozen=True, tag="profile"):
    """Turn device times by line on or off."""

    on: bool


class AskRestart(_Ask, frozen=True, tag="restart"):
    """Restart the kernel and keep the session. There is an answer only if it cannot."""


Ask = (
    AskProgram
    | AskCompiled
    | AskEvict
    | AskPin
    | AskUnpin
    | AskClear
    | AskFree
    | AskProfile
    | AskRestart
)
FromPanel = Open | Watch | Resync | Ask

# ---- from the kernel ----------------------------------------------------------------------------


class Message(Struct, tag_field="type", kw_only=True):
    """A message from the kernel. The client sets `number` when it sends the message."""

    number: int = 0


class Hello(Message, tag="hello"):
    """The first message on a comm. `session` is another one after a restart."""

    version: int
    perspex: str
    jaxlib: str
    platform: str
    session: str
    profiling: bool


class TopicChanges(Struct):
    """What has changed in one topic.

    With `reset`, `put` is all there is; otherwise rows are added or replaced by id, and those in
    `drop` are gone.
    """

    topic: Topic
    reset: bool
    put: list[AnyRow]
    drop: list[str]
    forgotten: Annotated[int, Meta(description="How many old rows there is no room for.")]


class Changes(Message, tag="changes"):
    """What has changed in the topics that a page shows; at most 20 messages a second."""

    topics: list[TopicChanges]


class Reply(Message, tag="reply"):
    """The answer to an ask."""

    request: int
    ok: bool
    text: Annotated[str, Meta(description="What was done, or why it was not.")]
    program: Program | UnsetType = UNSET
    compiled: Compiled | UnsetType = UNSET


FromKernel = Hello | Changes | Reply
