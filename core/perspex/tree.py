"""Pytrees: nested containers taken apart into their leaves, and put together again.

Transforms work on flat lists of arrays; users pass tuples, lists, dicts, named tuples, dataclasses
and classes of their own (`containers` registers those).

What always holds: `unflatten(structure(t), leaves(t))` equals `t`; dicts and default dicts are
taken in the order of their sorted keys, ordered dicts in that of insertion; `None` is a container
without leaves; what is not registered is a leaf.

Two vocabularies name the same functions: that of `jax.tree` (`map`, `leaves`) and, at the end,
that of `jax.tree_util` (`tree_map`, `tree_leaves`).
"""

from __future__ import annotations

import builtins
import collections
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from perspex.base.pytree_registry import DictKey as DictKey
from perspex.base.pytree_registry import FlattenedIndexKey as FlattenedIndexKey
from perspex.base.pytree_registry import GetAttrKey as GetAttrKey
from perspex.base.pytree_registry import KeyEntry as KeyEntry
from perspex.base.pytree_registry import KeyPath as KeyPath
from perspex.base.pytree_registry import Partial as Partial
from perspex.base.pytree_registry import PyTreeDef as PyTreeDef
from perspex.base.pytree_registry import SequenceKey as SequenceKey
from perspex.base.pytree_registry import default_registry as default_registry
from perspex.base.pytree_registry import register_dataclass as register_dataclass
from perspex.base.pytree_registry import register_pytree_node as register_pytree_node
from perspex.base.pytree_registry import register_pytree_node_class as register_pytree_node_class
from perspex.base.pytree_registry import register_pytree_with_keys as register_pytree_with_keys
from perspex.base.pytree_registry import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from perspex.base.pytree_registry import register_static as register_static
from perspex.base.pytree_registry import static as static
from perspex.base.tree_paths import ARRAY, IsLeaf, PyTree
from perspex.base.tree_paths import keystr as keystr
from perspex.base.tree_paths import prefix_errors as prefix_errors
from perspex.base.tree_paths import structure_errors as structure_errors
from perspex.base.tree_structures import flatten_one_level as flatten_one_level
from perspex.base.tree_structures import flatten_one_level_with_keys as flatten_one_level_with_keys
from perspex.base.tree_structures import is_tree_node as is_tree_node
from perspex.base.tree_structures import treedef_children as treedef_children
from perspex.base.tree_structures import treedef_is_leaf as treedef_is_leaf
from perspex.base.tree_structures import treedef_tuple as treedef_tuple
from perspex.base.xla import pytree as _pytree

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip

_flatten = default_registry.flatten
_UNSPECIFIED: Any = object()


# -- Taking apart and putting together


def flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and its structure.

    Args:
      tree: any nest of registered containers.
      is_leaf: a function of a subtree; where it is true the subtree counts as a leaf.

    Returns:
      `(leaves, treedef)`.

    Raises:
      ValueError: for a dict whose keys do not sort.

    >>> flatten({"b": [1, 2], "a": None})
    ([1, 2], PyTreeDef({'a': None, 'b': [*, *]}))
    """
    try:
        found: tuple[list[Any], PyTreeDef] = _flatten(tree, is_leaf)
        return found
    except ValueError as error:
        _explain_unsortable(tree, is_leaf, error)
        raise


def leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, in order.

    Args:
      tree: any nest of registered containers.
      is_leaf: a function of a subtree; where it is true the subtree counts as a leaf.

    Returns:
      A list.

    Raises:
      ValueError: for a dict whose keys do not sort.

    >>> leaves((1, {"x": 2}))
    [1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """The structure of a tree.

    Args:
      tree: any nest of registered containers.
      is_leaf: a function of a subtree; where it is true the subtree counts as a leaf.

    Returns:
      A `PyTreeDef`.

    Raises:
      ValueError: for a dict whose keys do not sort.

    >>> structure((1, {"x": 2}))
    PyTreeDef((*, {'x': *}))
    """
    return flatten(tree, is_leaf)[1]


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """The tree with a structure and leaves.

    Args:
      treedef: the structure.
      leaves: its leaves, in order.

    Returns:
      A tree.

    Raises:
      ValueError: when the number of leaves is not `treedef.num_leaves`.

    >>> unflatten(structure([0, (0,)]), "ab")
    ['a', ('b',)]
    """
    return treedef.unflatten(leaves)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Whether no item of the iterable is a container.

    Args:
      iterable: any values.
      is_leaf: a function of a subtree; where it is true the subtree counts as a leaf.

    Returns:
      True or False.

    Raises:
      TypeError: if `iterable` is not one.

    >>> all_leaves([1, 2]), all_leaves([1, None])
    (True, False)
    """
    if is_leaf is None:
        return bool(_pytree.all_leaves(default_registry, iterable))
    items = list(iterable)
    found = leaves(items, is_leaf)
    return len(found) == len(items) and builtins.all(
        x is y for x, y in zip(found, items, strict=True)
    )


def _explain_unsortable(tree: Any, is_leaf: IsLeaf | None, error: ValueError) -> None:
    """Raise a better error if the failure to flatten is that of a dict's keys."""
    pending: list[tuple[tuple[Any, ...], Any]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        if is_leaf is not None and is_leaf(node):
            continue
        if type(node) in (dict, collections.defaultdict):
            try:
                sorted(node)
            except TypeError:
                kinds = ", ".join(sorted({type(key).__name__ for key in node}))
                at = f" at {keystr(path)}" if path else ""
                raise ValueError(
                    f"the keys of a dict in a pytree must be sortable, but those of the dict{at} "
                    f"have the types {kinds}; use keys of one type, or an OrderedDict"
                ) from error
        one = default_registry.flatten_one_level_with_keys(node)
        if one is not None:
            pending.extend([((*path, key), child) for key, child in one[0]])


# -- Functions over leaves


def map(f: Callable[..., Any], tree: PyTree, *rest: Any, is_leaf: IsLeaf | None = None) -> PyTree:
    """Apply a function to each leaf, or to the corresponding leaves of several trees.

    Args:
      f: takes one leaf of each tree.
      tree: gives the structure of the result.
      rest: trees of the structure of `tree`; below its leaves they may go on, and `f` then
        gets a subtree.
      is_leaf: as in `flatten`, for `tree`.

    Returns:
      A tree of the structure of `tree`.

    Raises:
      ValueError: for a tree of `rest` of another structure; the message names the place.

    >>> map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    found, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in found])
    columns = [found, *_columns(treedef, tree, rest, is_leaf, "tree.map")]
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


def _columns(
    treedef: PyTreeDef, tree: Any, rest: Sequence[Any], is_leaf: IsLeaf | None, name: str
) -> list[list[Any]]:
    """For each tree of `rest` its subtrees at the leaves of `tree`."""
    columns = []
    for i, other in enumerate(rest):
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError as error:
            found = prefix_errors(tree, other, is_leaf, "tree")
            details = found[0] if found else str(error)
            raise ValueError(
                f"{name}: rest[{i}] does not have the structure of the first tree: {details}"
            ) from None
    return columns


def reduce(
    function: Callable[[Any, Any], Any],
    tree: PyTree,
    initializer: Any = _UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Combine the leaves from left to right with a function of two, as `functools.reduce` does.

    Args:
      function: takes two leaves or results.
      tree: any tree.
      initializer: the first operand; by default the first leaf.
      is_leaf: as in `flatten`.

    Returns:
      What the last call of `function` returns.

    Raises:
      TypeError: for a tree without leaves when there is no `initializer`.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    found = leaves(tree, is_leaf)
    if initializer is _UNSPECIFIED:
        return functools.reduce(function, found)
    return functools.reduce(function, found, initializer)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: PyTree,
    *,
    identity: Any = _UNSPECIFIED,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Combine the leaves with an associative function of two, as a balanced tree of calls.

    The depth is logarithmic, so that calls which do not depend on each other can run together.

    Args:
      operation: associative; takes two leaves or results.
      tree: any tree.
      identity: the result for a tree without leaves.
      is_leaf: as in `flatten`.

    Returns:
      What the last call of `operation` returns; the leaf of a tree with one leaf.

    Raises:
      TypeError: for a tree without leaves when there is no `identity`.

    >>> reduce_associative(lambda x, y: (x, y), [1, 2, 3, 4])
    ((1, 2), (3, 4))
    """
    found = leaves(tree, is_leaf)
    if not found:
        if identity is _UNSPECIFIED:
            raise TypeError("reduce_associative: a tree without leaves needs an `identity`")
        return identity

    def combine(first: int, last: int) -> Any:
        if last - first == 1:
            return found[first]
        middle = (first + last) // 2
        return operation(combine(first, middle), combine(middle, last))

    return combine(0, len(found))


def all(tree: PyTree, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true; true for a tree without leaves.

    Args:
      tree: any tree.
      is_leaf: as in `flatten`.

    Returns:
      True or False.

    Raises:
      ValueError: for an array of several elements, whose truth is not defined.
      TracerBoolConversionError: for a traced leaf.

    >>> all({"a": True, "b": [False]})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> PyTree:
    """Turn a tree of trees inside out: a list of dicts into a dict of lists.

    Args:
      outer_treedef: the structure of the outer tree.
      inner_treedef: the structure that its leaves have; `None` takes that of the first.
      pytree_to_transpose: a tree of structure `outer_treedef` of trees of `inner_treedef`.

    Returns:
      A tree of structure `inner_treedef` of trees of `outer_treedef`.

    Raises:
      TypeError: when the number of leaves is not the product of the two.

    >>> transpose(structure([0, 0]), structure({"x": 0}), [{"x": 1}, {"x": 2}])
    {'x': [1, 2]}
    """
    if inner_treedef is None:
        inner_treedef = structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    found, treedef = flatten(pytree_to_transpose)
    inner_size, outer_size = inner_treedef.num_leaves, outer_treedef.num_leaves
    if len(found) != inner_size * outer_size:
        raise TypeError(
            f"tree.transpose: expected the structure {outer_treedef.compose(inner_treedef)} "
            f"with {outer_size} x {inner_size} leaves, got {treedef} with {len(found)}"
        )
    return inner_treedef.unflatten(
        [outer_treedef.unflatten(found[i::inner_size]) for i in range(inner_size)]
    )


# -- Key paths


def flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]:
    """The leaves of a tree with their key paths, and its structure.

    Args:
      tree: any tree.
      is_leaf: as in `flatten`; with `is_leaf_takes_path` a function of path and subtree.
      is_leaf_takes_path: see `is_leaf`.

    Returns:
      A list of pairs of key path and leaf, and the structure.

    Raises:
      ValueError: for a dict whose keys do not sort.

    >>> flatten_with_path({"a": [1]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    predicate = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        predicate = lambda path, node: is_leaf(node)  # noqa: E731
    try:
        found: tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]
        found = default_registry.flatten_with_path(tree, predicate)
        return found
    except ValueError as error:
        _explain_unsortable(tree, None, error)
        raise


def leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], Any]]:
    """The leaves of a tree with their key paths.

    Args:
      tree: any tree.
      is_leaf: as in `flatten`; with `is_leaf_takes_path` a function of path and subtree.
      is_leaf_takes_path: see `is_leaf`.

    Returns:
      A list of pairs of key path and leaf.

    Raises:
      ValueError: for a dict whose keys do not sort.

    >>> [(keystr(path), leaf) for path, leaf in leaves_with_path({"a": [1]})]
    [("['a'][0]", 1)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Apply a function of key path and leaf to each leaf, or to those of several trees.

    Args:
      f: takes a key path, and one leaf of each tree.
      tree: gives the structure of the result.
      rest: trees of the structure of `tree`, or that go on below its leaves.
      is_leaf: as in `flatten`; with `is_leaf_takes_path` a function of path and subtree.
      is_leaf_takes_path: see `is_leaf`.

    Returns:
      A tree of the structure of `tree`.

    Raises:
      ValueError: for a tree of `rest` of another structure; the message names the place.

    >>> map_with_path(lambda path, x: keystr(path) + "=" + str(x), {"a": [1]})
    {'a': ["['a'][0]=1"]}
    """
    found, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    paths = [path for path, _ in found]
    columns = _columns(treedef, tree, rest, None, "tree.map_with_path")
    first = [leaf for _, leaf in found]
    return treedef.unflatten([f(*xs) for xs in zip(paths, first, *columns, strict=True)])


# -- Prefixes


def broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Repeat the leaves of a prefix for all leaves below them.

    Args:
      prefix_tree: a tree whose leaves stand where `full_tree` has leaves or subtrees.
      full_tree: any tree.
      is_leaf: as in `flatten`, for `prefix_tree`.

    Returns:
      A tree of the structure of `full_tree`.

    Raises:
      ValueError: if `prefix_tree` is not a prefix; the message names the place.

    >>> broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
    {'a': [1, 1], 'b': 2}
    """
    return structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(
    prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf | None = None, name: str = "prefix_tree"
) -> list[Any]:
    """For each leaf of a tree the leaf of the prefix above it.

    Args:
      prefix_tree: a tree whose leaves stand where `full_tree` has leaves or subtrees.
      full_tree: any tree.
      is_leaf: as in `flatten`, for `prefix_tree`.
      name: what the prefix is called in errors, as in `in_axes`.

    Returns:
      A list.

    Raises:
      ValueError: if `prefix_tree` is not a prefix; the message names the place.

    >>> broadcast_prefix({"a": 0, "b": None}, {"a": [7, 8], "b": 9}, lambda x: x is None)
    [0, 0, None]
    """
    found, treedef = flatten(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError as error:
        details = prefix_errors(prefix_tree, full_tree, is_leaf, name) or [str(error)]
        lines = "\n  ".join(details)
        raise ValueError(f"{name} must be a tree prefix of the value:\n  {lines}") from None
    return [
        leaf
        for leaf, subtree in zip(found, subtrees, strict=True)
        for _ in range(structure(subtree).num_leaves)
    ]


def flatten_axes(name: str, treedef: PyTreeDef, axes: Any) -> list[Any]:
    """Axes given as a prefix, one for each leaf of a structure. `None` is an axis, not a container.

    Args:
      name: what the axes are called in errors, as in `in_axes`.
      treedef: the structure of the value.
      axes: a tree of integers and `None`, a prefix of `treedef`.

    Returns:
      A list.

    Raises:
      ValueError: if `axes` is not a prefix; the message names the place.

    >>> flatten_axes("in_axes", structure((1, [2, 3])), (0, None))
    [0, None, None]
    """
    given, prefix = flatten(axes, is_leaf=lambda x: x is None)
    counts: list[int] = []
    if _leaf_counts(prefix, treedef, counts):
        return [at for at, n in zip(given, counts, strict=True) for _ in range(n)]
    full = treedef.unflatten([ARRAY] * treedef.num_leaves)
    return broadcast_prefix(axes, full, lambda x: x is None, name)


def _leaf_counts(prefix: PyTreeDef, full: PyTreeDef, counts: list[int]) -> bool:
    """Add the number of leaves below each leaf of `prefix`, if that is a prefix of `full`.

    No container is made: the constructors of some take arrays alone.
    """
    if prefix.num_nodes == 1 and prefix.num_leaves == 1:
        counts.append(full.num_leaves)
        return True
    inner, outer = prefix.children(), full.children()
    return (
        prefix.node_data() == full.node_data()
        and len(inner) == len(outer)
        and builtins.all(_leaf_counts(a, b, counts) for a, b in zip(inner, outer, strict=True))
    )


def axis_path(name: str, treedef: PyTreeDef, i: int) -> str:
    """What an error calls the entry for one leaf among axes.

    Args:
      name: what the axes are called, as in `out_axes`.
      treedef: the structure of the value.
      i: the number of the leaf.

    Returns:
      A string.

    Raises:
      IndexError: if there is no such leaf.

    >>> axis_path("out_axes", structure((0, {"w": 0})), 1)
    "out_axes[1]['w']"
    """
    return name + keystr(leaves_with_path(treedef.unflatten(range(treedef.num_leaves)))[i][0])


# -- The names of `jax.tree_util`

tree_all = all
tree_broadcast = broadcast
tree_flatten = flatten
tree_flatten_with_path = flatten_with_path
tree_leaves = leaves
tree_leaves_with_path = leaves_with_path
tree_map = map
tree_map_with_path = map_with_path
tree_reduce = reduce
tree_reduce_associative = reduce_associative
tree_structure = structure
tree_transpose = transpose
tree_unflatten = unflatten
