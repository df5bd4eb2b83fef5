"""Containers in files."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import pytest

from perspex import export, tree, tree_util
from perspex.export import trees
from perspex.export.tables import Reader, write


class Point(NamedTuple):
    x: Any
    y: Any


class Box:
    def __init__(self, size: int, inside: Any) -> None:
        self.size, self.inside = size, inside


tree_util.register_pytree_node(Box, lambda b: ((b.inside,), b.size), lambda n, xs: Box(n, *xs))


def test_round_trips() -> None:
    export.register_namedtuple_serialization(Point, serialized_name="tests.Point")
    export.register_pytree_node_serialization(
        Box,
        serialized_name="tests.Box",
        serialize_auxdata=lambda n: str(n).encode(),
        deserialize_auxdata=int,
    )
    ordered = collections.OrderedDict(b=1, a=2)
    for value in (
        1.0,
        (1, [2, None], {"b": 3, "a": ()}),
        ((Point(1, [2]), Box(3, {"x": 4})), {"k": ordered}),
    ):
        structure = tree.structure(value)
        data = bytes(write(trees.table_of(structure)))
        leaves = list(range(structure.num_leaves))
        assert trees.structure_in(Reader.root(data), leaves) == structure


def test_refusals() -> None:
    class Other(NamedTuple):
        x: Any

    class NoContainer:
        pass

    with pytest.raises(ValueError, match="unregistered type"):
        trees.table_of(tree.structure(Other(1)))
    with pytest.raises(TypeError, match="only for dictionaries with string keys"):
        trees.table_of(tree.structure({1: 2}))
    with pytest.raises(ValueError, match="is not a class of named tuples"):
        export.register_namedtuple_serialization(NoContainer, serialized_name="x")
    with pytest.raises(ValueError, match="is no container"):
        export.register_pytree_node_serialization(
            NoContainer,
            serialized_name="x",
            serialize_auxdata=lambda _: b"",
            deserialize_auxdata=lambda _: None,
        )
    export.register_namedtuple_serialization(Other, serialized_name="tests.Other")
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        export.register_namedtuple_serialization(Other, serialized_name="tests.Again")

    class Another(NamedTuple):
        x: Any

    with pytest.raises(ValueError, match="Duplicate serialization registration for serialized_nam"):
        export.register_namedtuple_serialization(Another, serialized_name="tests.Other")
    with pytest.raises(NotImplementedError, match="only if its keys are strings"):
        trees.table_of(tree.structure(collections.OrderedDict([(1, 2)])))
