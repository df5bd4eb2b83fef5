"""The data of widgets, which are shown in outputs: part of the contract (`contract`)."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta


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
