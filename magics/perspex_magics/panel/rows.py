"""The rows of the tables that the kernel sends: part of the contract (`contract`)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


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

    `used`, `peak`, `limit` and `piece`, its largest free block if there are many, are what the
    device itself says of its memory, or null if it says nothing.
    """

    name: Annotated[str, Meta(description="Its platform and number: `cpu:0`.")]
    kind: str
    process: int
    bytes: int
    arrays: int
    used: int | None
    peak: int | None
    limit: int | None
    piece: int | None


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
