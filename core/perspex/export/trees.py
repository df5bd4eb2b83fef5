"""Which containers can be written to a file, and how their structure is written."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from perspex import tree
from perspex.base.pytree_registry import PyTreeDef, default_registry
from perspex.export.tables import INT8, Number, Reader, Table

Class = TypeVar("Class", bound=type)

# The fields of the table of a structure, and its kinds.
_KIND, _CHILDREN, _NAMES, _CUSTOM_NAME, _DATA = range(5)
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)


class _Written(NamedTuple):
    """How a class is written."""

    name: str
    cls: type
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any]


_by_class: dict[type, _Written] = {}
_by_name: dict[str, _Written] = {}


def register_pytree_node_serialization(
    nodetype: Class,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> Class:
    """Let exported functions take and return containers of a class when they are written to a file.

    Args:
      nodetype: a class registered with `tree_util.register_pytree_node`.
      serialized_name: what the file calls the class.
      serialize_auxdata: turns the static data of an instance into bytes.
      deserialize_auxdata: turns these bytes into static data.
      from_children: makes an instance from static data and children; by default the `unflatten`
        function that the class was registered with.

    Returns:
      The class.

    Raises:
      ValueError: if the class or the name is registered here already, or if the class is no
        container and `from_children` is not given.

    >>> from perspex import export, tree_util
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> tree_util.register_pytree_node(Pair, lambda p: ((p.x, p.y), ()), lambda _, xy: Pair(*xy))
    >>> export.register_pytree_node_serialization(
    ...     Pair,
    ...     serialized_name="example.Pair",
    ...     serialize_auxdata=lambda _: b"",
    ...     deserialize_auxdata=lambda _: (),
    ... ).__name__
    'Pair'
    """
    if nodetype in _by_class:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`, which is already "
            f"registered under the name {_by_class[nodetype].name!r}"
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`, which "
            f"is the name of {_by_name[serialized_name].cls}; choose another"
        )
    build = from_children or _unflatten(nodetype)
    entry = _Written(serialized_name, nodetype, serialize_auxdata, deserialize_auxdata, build)
    _by_class[nodetype] = _by_name[serialized_name] = entry
    return nodetype


def _unflatten(nodetype: type) -> Callable[[Any, Sequence[Any]], Any]:
    """What makes an instance of a registered container."""

    def build(data: Any, children: Sequence[Any]) -> Any:
        parts = [tree.structure(child) for child in children]
        made = PyTreeDef.from_node_data_and_children(default_registry, (nodetype, data), parts)
        return tree.unflatten(made, [leaf for child in children for leaf in tree.leaves(child)])

    if not tree_knows(nodetype):
        raise ValueError(
            f"{nodetype} is no container; call `tree_util.register_pytree_node` for it first, or "
            "give `from_children`"
        )
    return build


def tree_knows(nodetype: type) -> bool:
    """Whether instances of the class are containers."""
    try:
        PyTreeDef.from_node_data_and_children(default_registry, (nodetype, None), [])
    except RuntimeError:
        return False
    return True


def register_namedtuple_serialization(nodetype: Class, *, serialized_name: str) -> Class:
    """Let exported functions take and return named tuples of a class when they are written.

    Args:
      nodetype: a class made by `collections.namedtuple` or derived from `typing.NamedTuple`.
      serialized_name: what the file calls the class.

    Returns:
      The class.

    Raises:
      ValueError: for other classes, or if the class or the name is registered here already.

    >>> import typing
    >>> from perspex import export
    >>> class Point(typing.NamedTuple):
    ...     x: float
    ...     y: float
    >>> export.register_namedtuple_serialization(Point, serialized_name="example.Point").__name__
    'Point'
    """
    fields = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or fields is None:
        raise ValueError(
            f"{nodetype} is not a class of named tuples; Use "
            "`export.register_pytree_node_serialization` for other containers"
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=lambda keys, values: nodetype(**dict(zip(keys, values, strict=True))),
    )


def _keys_to_bytes(keys: Any) -> bytes:
    if not all(isinstance(key, str) for key in keys):
        raise NotImplementedError(
            f"an OrderedDict is written only if its keys are strings, got the keys {list(keys)}"
        )
    return json.dumps(list(keys)).encode()


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_keys_to_bytes,
    deserialize_auxdata=json.loads,
    from_children=lambda keys, values: collections.OrderedDict(zip(keys, values, strict=True)),
)


def table_of(structure: Any) -> Table:
    """The table of a structure."""
    node = structure.node_data()
    fields: dict[int, Any] = {_CHILDREN: [table_of(child) for child in structure.children()]}
    if not fields[_CHILDREN]:
        del fields[_CHILDREN]
    if node is None:
        kind = _LEAF
    else:
        cls, data = node
        if cls is type(None):
            kind = _NONE
        elif cls is tuple:
            kind = _TUPLE
        elif cls is list:
            kind = _LIST
        elif cls is dict:
            kind = _DICT
            for key in data:
                if not isinstance(key, str):
                    raise TypeError(
                        "Serialization is supported only for dictionaries with string keys. Found "
                        f"key {key} of type {type(key)}."
                    )
            if data:
                fields[_NAMES] = list(data)
        elif cls in _by_class:
            kind = _CUSTOM
            entry = _by_class[cls]
            written = entry.to_bytes(data)
            if not isinstance(written, (bytes, bytearray)):
                raise ValueError(
                    f"the custom serialization function of {cls} must return bytes, it returned "
                    f"{type(written)}"
                )
            fields[_CUSTOM_NAME], fields[_DATA] = entry.name, bytes(written)
        else:
            raise ValueError(
                f"Cannot serialize PyTreeDef containing an unregistered type `{cls}`. Use "
                "`export.register_pytree_node_serialization` or "
                "`export.register_namedtuple_serialization`."
            )
    return Table({_KIND: Number(INT8, kind), **fields})


def structure_in(table: Reader | None, leaves: Sequence[Any]) -> Any:
    """The structure that a table describes; `leaves` take the places of its leaves meanwhile."""
    if table is None:
        raise ValueError("the bytes are damaged: a tree is missing")
    return tree.structure(_instance(table, iter(leaves)))


def _instance(table: Reader, leaves: Iterator[Any]) -> Any:
    kind = table.number(_KIND, INT8)
    children = [_instance(child, leaves) for child in table.tables(_CHILDREN)]
    if kind == _LEAF:
        return next(leaves)
    if kind == _NONE:
        return None
    if kind == _TUPLE:
        return tuple(children)
    if kind == _LIST:
        return children
    if kind == _DICT:
        return dict(zip(table.strings(_NAMES), children, strict=True))
    if kind == _CUSTOM:
        name = table.string(_CUSTOM_NAME)
        if name not in _by_name:
            raise ValueError(
                f"Cannot deserialize a PyTreeDef containing an unregistered type `{name}`. Use "
                "`export.register_pytree_node_serialization` or "
                "`export.register_namedtuple_serialization`."
            )
        entry = _by_name[name]
        return entry.build(entry.from_bytes(table.bytes(_DATA)), children)
    raise ValueError(f"Cannot deserialize PyTreeDef with unknown kind: {kind}")
