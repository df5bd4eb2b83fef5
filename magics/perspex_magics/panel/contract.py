"""What the kernel and its views say to each other, as types: the contract of panel and widgets.

`schema` makes `schema.json` from these types, and `contract.ts` from the schema, both by `make
panel`, so that each name is written once. Times are in seconds, sizes in bytes, and lines count
from 1. The module imports nothing of Perspex: the build imports it by itself.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

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


Ask = AskProgram | AskCompiled | AskEvict | AskPin | AskUnpin | AskClear | AskFree | AskProfile
FromPanel = Open | Watch | Resync | Ask

# ---- rows ---------------------------------------------------------------------------------------


class Place(Struct, frozen=True):
    """A line of the user's code. `text` is `Cell In[3]:2` or `file.py:10`."""

    text: str
    cell: Annotated[str, Meta(description="The id of the notebook's cell, or empty.")]
    file: str
    line: int


class Row(Struct, frozen=True, rename="camel", tag_field="row"):
    """A row of a table. Its `id` names it, `order` says where it stands; it is replaced whole."""

    id: str
    order: int


class Miss(Struct, frozen=True):
    """Why an earlier program of the function could not be used.

    `compiles` counts the programs of the function so far, `here` those from the same line.
    """

    cause: str
    advice: str
    seconds: float
    compiles: int
    here: int


class Roof(Struct, frozen=True):
    """The place of a program in the roofline, by the mean of its measured calls.

    FLOPs per second and per byte, its part of the peak of this machine, and what limits it.
    """

    flops: float
    intensity: float
    part: float
    bound: Literal["arithmetic", "memory"]


class ProgramRow(Row, frozen=True, tag="program"):
    """A function compiled for one signature.

    `title` is what a list calls it: for a `%%jit` cell the names that it assigns, and `cell` is its
    number, as `In[3]`, or empty. `library` says that it is not the user's own, and `used` is the
    number of the last cell that is known to have compiled or named it, or 0.
    `calls` and `device` are sums over all cells in which device times were measured.
    """

    name: str
    title: str
    cell: str
    library: bool
    used: int
    signature: str
    at: Place | None
    found: Literal["xla", "memory", "disk"]
    trace: float | None
    lower: float | None
    compile: float
    by_xla: Annotated[float, Meta(description="How long XLA needed for it, now or earlier.")]
    size: int | None
    equations: int | None
    pinned: bool
    miss: Miss | None
    calls: int | None
    device: float | None
    roof: Annotated[Roof | None, Meta(description="Null if its work or the peaks are unknown.")]
    can_show: Annotated[bool, Meta(description="Whether its document can be asked for.")]


class CellRow(Row, frozen=True, tag="cell"):
    """One run of a cell, and where its time went; the parts add up to `wall`."""

    cell: str
    count: int
    status: Literal["running", "ok", "error"]
    head: Annotated[str, Meta(description="The first line of the cell.")]
    wall: float
    trace: float
    lower: float
    compile: float
    device: float
    transfer: float
    python: float
    idle: float
    after: Annotated[float | None, Meta(description="How long the device went on.")]
    working: bool
    sources: dict[str, int]
    bytes: dict[str, int]


class BufferRow(Row, frozen=True, tag="buffer"):
    """The live buffers of one owner, each counted once."""

    owner: str
    kind: Literal["variable", "output", "traceback", "executable", "unowned"]
    what: str
    bytes: int
    device: str
    cell: Annotated[str, Meta(description="Where the variable was set: `In[3]`.")]
    also: str
    can_free: Annotated[bool, Meta(description="Whether `AskFree` can delete them.")]


class MemoryRow(Row, frozen=True, tag="memory"):
    """How much was alive at a time since the epoch, and the number of the cell that ended then."""

    time: float
    bytes: int
    count: int | None


class Use(Struct, frozen=True):
    """A use of a key."""

    function: str
    at: Place | None


class Reuse(Struct, frozen=True):
    """A key that was used more than once, with its first uses."""

    key: str
    uses: list[Use]


class KeyRow(Row, frozen=True, tag="key"):
    """What one line did with keys from one place: a node of the tree of keys."""

    parent: str | None
    function: str
    expression: str
    names: list[str]
    at: Place | None
    calls: int
    keys: int
    makes: Annotated[bool, Meta(description="Whether it made keys; otherwise it drew.")]
    traced: bool
    reused_keys: Annotated[int, Meta(description="How many of its keys were used more than once.")]
    reused: Annotated[list[Reuse], Meta(description="The first of these keys.")]


class LineRow(Row, frozen=True, tag="line"):
    """Device time of one line, in the last measured cell that ran it."""

    at: Place
    code: Annotated[str, Meta(description="The text of the line, without its indentation.")]
    seconds: float
    shared: Annotated[float, Meta(description="The part of fusions of several lines, by share.")]
    runs: int


class DeviceRow(Row, frozen=True, tag="device"):
    """A device, and what arrays hold of its memory.

    `used` and `limit` are what the device itself says of its memory, or null if it says nothing.
    """

    name: Annotated[str, Meta(description="Its platform and number: `cpu:0`.")]
    kind: str
    process: int
    bytes: int
    arrays: int
    used: int | None
    limit: int | None


class PlacementRow(Row, frozen=True, tag="placement"):
    """An array over several devices, and which of its parts each of them holds.

    `devices` has the ids of rows in `devices`, in the order of the mesh, and `parts` the number of
    the part that each of them holds; devices with the same number hold copies. `ranges` says where
    each part begins and ends along each axis of the array.
    """

    owner: str
    what: Annotated[str, Meta(description="The type, as in `f32[8@x,4]`.")]
    spec: Annotated[str, Meta(description="How it is cut: `P('x', None)`.")]
    cell: Annotated[str, Meta(description="Where the variable was set: `In[3]`.")]
    bytes: Annotated[int, Meta(description="On all devices, copies included.")]
    each: Annotated[int, Meta(description="The bytes on one device.")]
    copies: Annotated[int, Meta(description="How many devices hold each part.")]
    axes: Annotated[list[str], Meta(description="The axes of the mesh, or none.")]
    sizes: Annotated[list[int], Meta(description="The sizes of these axes.")]
    devices: list[str]
    parts: list[int]
    ranges: list[str]


class ExchangeRow(Row, frozen=True, tag="exchange"):
    """What devices send each other at one line in one run of a program, by one collective."""

    program: Annotated[str, Meta(description="The id of a row in `programs`.")]
    name: Annotated[str, Meta(description="The function's name.")]
    at: Place | None
    collective: Annotated[str, Meta(description="As XLA calls it: `all-reduce`.")]
    sent: Annotated[float, Meta(description="The bytes that each device sends.")]
    times: float
    group: Annotated[int, Meta(description="How many devices exchange with each other.")]
    share: Annotated[float, Meta(description="The predicted part of the time, or of the work.")]


class EngineRow(Row, frozen=True, tag="engine"):
    """A process of the notebook's cluster, and its last cell.

    `began` and `ended` are seconds since the first of the processes began that cell, or null before
    the first cell. The parts of the time are those of a `CellRow`.
    """

    process: int
    pid: int
    alive: bool
    memory: Annotated[int | None, Meta(description="The bytes of memory that the process uses.")]
    bytes: Annotated[int | None, Meta(description="The bytes of its live arrays.")]
    count: Annotated[int, Meta(description="The number of its last cell, or 0 for none.")]
    began: float | None
    ended: float | None
    wall: float
    trace: float
    lower: float
    compile: float
    device: float
    transfer: float
    python: float
    idle: float


class BadgeRow(Row, frozen=True, tag="badge"):
    """What somebody should look at in a tab, from the last run of a cell or of now."""

    tab: str
    text: Annotated[str, Meta(description="One sentence.")]
    count: int


AnyRow = (
    ProgramRow
    | CellRow
    | BufferRow
    | MemoryRow
    | KeyRow
    | LineRow
    | DeviceRow
    | PlacementRow
    | ExchangeRow
    | EngineRow
    | BadgeRow
)

# ---- documents ----------------------------------------------------------------------------------


class Listing(TypedDict):
    """Lines of text, with newlines between them.

    `links` has an entry for each line: the number of the equation that it belongs to, or those of
    several, or null. `folds` are pairs: the number of a line, from 0, and how many of the following
    lines lie inside of it.
    """

    text: str
    folds: list[list[int]]
    links: list[int | list[int] | None]


class Excerpt(TypedDict):
    """Lines of a cell or a file.

    `name` is `Cell In[3]` or a path, `first` the first line's number.
    """

    name: str
    cell: str
    first: int
    lines: Listing


class Equations(TypedDict):
    """A table by columns, because a program may have tens of thousands of equations.

    `parent` is the equation in whose program one stands, or -1; `inputs` are the equations whose
    results it reads; `at` is where it was written, as an index into `lines`. `flops` and `bytes`
    are those of one run, or null if unknown.
    """

    primitive: list[str]
    outputs: list[list[str]]
    parent: list[int]
    inputs: list[list[int]]
    lines: list[str]
    at: list[int]
    flops: list[float | None]
    bytes: list[float | None]


class Program(TypedDict):
    """One program.

    A reply to `AskProgram` lacks the two forms that `Compiled` has. Equations are numbered through
    nested programs in the order in which they are printed.
    """

    name: str
    signature: str
    sources: list[Excerpt]
    equations: Equations
    jaxpr: Listing
    stablehlo: NotRequired[Listing]
    hlo: NotRequired[Listing]
    notes: list[str]


class Compiled(TypedDict):
    """What a program is lowered and compiled to, linked to its equations."""

    stablehlo: Listing
    hlo: Listing


# ---- widgets ------------------------------------------------------------------------------------


class Histogram(TypedDict):
    """How many samples lie between one edge and the next, and the expected number."""

    edges: list[float]
    counts: list[int]
    expected: NotRequired[list[float]]
    outside: NotRequired[int]


class Stage(TypedDict):
    """One stage of compiling a function."""

    name: str
    seconds: float | None
    note: str


class Timings(TypedDict):
    """What `perspex.timings` measured; `outside` runs took longer than the histogram shows."""

    name: str
    signature: str
    sentence: str
    runs: int
    outside: int
    stages: list[Stage]
    quantiles: dict[str, dict[str, float]]
    queued: float | None
    histogram: Histogram


class KeyNode(TypedDict):
    """A key, or what was drawn with one, in the tree of `perspex.key_explorer`."""

    id: int
    parent: int | None
    depth: int
    kind: Literal["root", "split", "fold_in", "draw"]
    label: str
    words: list[str]
    alike: Annotated[str, Meta(description="A letter of all nodes with the same bits, or empty.")]
    used: Annotated[list[str], Meta(description="What used the key, if more than one thing did.")]


class KeyLine(TypedDict):
    """A line of the notebook that made or used the first key."""

    indent: str
    text: str
    place: str
    remark: str
    is_bad: bool


class KeyTree(TypedDict):
    """The tree of `perspex.key_explorer`."""

    partitionable: bool
    nodes: list[KeyNode]
    selected: int
    distributions: list[str]
    note: str
    notebook: list[KeyLine]


class HashStep(TypedDict):
    """Two words of a hash, and the operation that gave them."""

    what: str
    words: list[str]


class HashBlock(TypedDict):
    """One hash of a counter under a key, and which of its words are used."""

    key: list[str]
    counter: list[int]
    taken: Literal["both", "first", "second", "xor"]
    steps: list[HashStep]


class Samples(TypedDict):
    """Samples of a distribution; the empty ones have no histogram."""

    distribution: str
    shape: list[int]
    size: int
    dtype: str
    histogram: NotRequired[Histogram]
    facts: NotRequired[dict[str, float]]


class DrawnSamples(Samples):
    """The samples of a node, with one element and its bits."""

    index: int
    values: list[str]
    block: HashBlock | None
    bits: str | None
    value: str


class KeyDetail(TypedDict):
    """One node of the tree in full."""

    id: int
    kind: Literal["root", "split", "fold_in", "draw"]
    code: str
    numbers: list[int]
    origin: str
    blocks: list[HashBlock]
    drawn: NotRequired[DrawnSamples]
    preview: NotRequired[Samples]


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
