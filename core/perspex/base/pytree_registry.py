"""Which classes are containers: registration with jaxlib's pytree registries.

There are two registries, both of jaxlib, in C++: the default one, which is what users see, and
`call_registry`, with which the `jit` fast path takes arguments apart. They hold the same classes,
but for one: to a call, an array of typed keys is a container of its numbers (`runtime.keys`), which
C++ can pass on; to users it is a leaf. A class that is registered with the default one alone is a
container too, but calls with it go through Python. `tree` has the functions over trees and
re-exports these names.

What always holds: tuples, lists, dicts, named tuples and `None` are built in; ordered and default
dicts and `Partial` are registered here; everything else is a leaf until its class is registered.
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from perspex.base.xla import pytree as _pytree

DictKey = _pytree.DictKey
"""Key path entry of a dict's item; `str` gives `['name']`."""
FlattenedIndexKey = _pytree.FlattenedIndexKey
"""Key path entry of a child of a class that was registered without keys."""
GetAttrKey = _pytree.GetAttrKey
"""Key path entry of an attribute; `str` gives `.name`."""
PyTreeDef = _pytree.PyTreeDef
"""The structure of a tree without its leaves."""
SequenceKey = _pytree.SequenceKey
"""Key path entry of an item of a tuple or list; `str` gives `[0]`."""

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]

default_registry = _pytree.default_registry()
"""The registry in jaxlib; each container class has its entry there."""
call_registry = _pytree.PyTreeRegistry()
"""The registry of compiled calls: the same classes, and arrays of typed keys."""
# The classes that are registered.
containers: weakref.WeakSet[type] = weakref.WeakSet()
# How a class was registered: the function and what it got beside the class, for another process.
ways: weakref.WeakKeyDictionary[type, tuple[Callable[..., Any], tuple[Any, ...]]] = (
    weakref.WeakKeyDictionary()
)


def _get_registry() -> Any:
    return default_registry


# A structure pickles by naming its registry, and the registry does not know its own name.
copyreg.pickle(type(default_registry), lambda _: (_get_registry, ()))


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
    | None = None,
) -> None:
    """Make a type a container.

    Args:
      nodetype: the type; its subclasses are not included.
      flatten_func: takes an instance; returns its children and hashable static data.
      unflatten_func: takes static data and children; returns an instance. It must accept any
        objects as children, because transforms pass placeholders.
      flatten_with_keys_func: like `flatten_func`, with pairs of key path entry and child.

    Errors:
      `ValueError` when the type is registered already.

    >>> from perspex import tree
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xy: Pair(*xy))
    >>> tree.leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    for registry in (default_registry, call_registry):
        registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    containers.add(nodetype)
    functions = flatten_func, unflatten_func, flatten_with_keys_func
    ways[nodetype] = register_pytree_node, functions


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a type a container whose children have names in key paths.

    Args:
      nodetype: the type.
      flatten_with_keys: takes an instance; returns pairs of key path entry and child, and static
        data.
      unflatten_func: takes static data and children; returns an instance.
      flatten_func: the same without the keys, where that is faster.
    """

    def without_keys(node: Any) -> tuple[Iterable[Any], Hashable]:
        children, data = flatten_with_keys(node)
        return [child for _, child in children], data

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


_Instance = TypeVar("_Instance")


def register_pytree_node_class(cls: type[_Instance]) -> type[_Instance]:
    """Class decorator: a container with the methods `tree_flatten` and `tree_unflatten`.

    Args:
      cls: `tree_flatten(self)` returns children and static data; the class method
        `tree_unflatten(cls, static, children)` returns an instance.

    >>> from perspex import tree
    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, item):
    ...         self.item = item
    ...     def tree_flatten(self):
    ...         return (self.item,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> tree.map(lambda x: x + 1, Box(1)).item
    2
    """
    methods: Any = cls
    register_pytree_node(cls, lambda node: node.tree_flatten(), methods.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: type[_Instance]) -> type[_Instance]:
    """Class decorator: a container with `tree_flatten_with_keys` and `tree_unflatten`.

    Args:
      cls: as in `register_pytree_node_class`, with pairs of key path entry and child; a method
        `tree_flatten` is used where it exists.
    """
    methods: Any = cls
    plain = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(
        cls,
        lambda node: node.tree_flatten_with_keys(),
        methods.tree_unflatten,
        None if plain is None else lambda node: node.tree_flatten(),
    )
    return cls


def register_dataclass(
    nodetype: type[_Instance],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type[_Instance]:
    """Make a dataclass a container; also a class decorator.

    Args:
      nodetype: a dataclass, or with both lists of fields any class whose instances are made from
        keyword arguments.
      data_fields: the fields that are children; by default those not marked static.
      meta_fields: the fields that are static data, compared and hashed; by default those made
        with `static()` or with `metadata={"static": True}`.
      drop_fields: fields that are left out, and then have their default.

    Returns:
      The class.

    Errors:
      `TypeError` or `ValueError` when the fields do not cover the dataclass.

    >>> from perspex import tree
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = static(default="layer")
    >>> tree.map(lambda x: 2 * x, Layer(1.5))
    Layer(w=3.0, name='layer')
    """
    name = f"register_dataclass({getattr(nodetype, '__name__', nodetype)})"
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(f"{name}: give both data_fields and meta_fields, or neither")
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"{name}: it is not a dataclass; give data_fields and meta_fields")
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if both := set(data) & set(meta):
        raise ValueError(f"{name}: {sorted(both)} cannot be both data and meta fields")
    if dataclasses.is_dataclass(nodetype):
        init = {f.name for f in dataclasses.fields(nodetype) if f.init}
        if unknown := {*data, *meta} - init:
            raise ValueError(f"{name}: {sorted(unknown)} are not fields of its `__init__`")
        if missing := init - {*data, *meta, *drop_fields}:
            raise ValueError(
                f"{name}: {sorted(missing)} are neither data nor meta fields; "
                "add them, or name them in drop_fields"
            )
    for registry in (default_registry, call_registry):
        registry.register_dataclass_node(nodetype, list(data), list(meta))
    containers.add(nodetype)
    ways[nodetype] = register_dataclass, (data, meta, tuple(drop_fields))
    return nodetype


def static(**kwargs: Any) -> Any:
    """A dataclass field that is static data in `register_dataclass`.

    Args:
      kwargs: those of `dataclasses.field`.
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_static(cls: type[_Instance]) -> type[_Instance]:
    """Class decorator: instances are containers without leaves, static data as a whole.

    Args:
      cls: hashable and comparable; a new value makes `jit` compile again.

    >>> from perspex import tree
    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> tree.leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node, lambda n: ((), n))
    return cls


def _register_builtin_containers() -> None:
    register_pytree_with_keys(
        collections.OrderedDict,
        lambda d: ([(DictKey(key), value) for key, value in d.items()], tuple(d)),
        lambda keys, values: collections.OrderedDict(zip(keys, values, strict=True)),
        lambda d: (list(d.values()), tuple(d)),
    )

    def keyed(d: collections.defaultdict[Any, Any]) -> Any:
        keys = tuple(sorted(d))
        return [(DictKey(key), d[key]) for key in keys], (d.default_factory, keys)

    register_pytree_with_keys(
        collections.defaultdict,
        keyed,
        lambda data, values: collections.defaultdict(data[0], zip(data[1], values, strict=True)),
    )


_register_builtin_containers()
containers.update([tuple, list, dict, type(None)])


# -- Partial


class _Whole:
    """A `functools.partial` as one function, so that another partial does not merge with it."""

    def __init__(self, func: functools.partial[Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.func(*args, **kw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Whole) and self.func is other.func

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return f"_Whole({self.func!r})"


class Partial(functools.partial[Any]):
    """`functools.partial` that is a container: the arguments are its children.

    The function is static data. So a function with arrays in it can be an argument of a transformed
    function.

    Args:
      func: the function; a `functools.partial` keeps its own arguments, as static data.
      args, kw: the first arguments, trees of arrays.

    >>> from perspex import tree
    >>> add = Partial(lambda x, y: x + y, 1)
    >>> tree.map(lambda x: 10 * x, add)(5)
    15
    """

    __module__ = "perspex.tree_util"

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        whole = _Whole(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, whole, *args, **kw)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
