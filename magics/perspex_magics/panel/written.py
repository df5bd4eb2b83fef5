"""Programs as the panel shows them, text and equations: part of the contract (`contract`)."""

from __future__ import annotations

from typing import NotRequired, TypedDict


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
