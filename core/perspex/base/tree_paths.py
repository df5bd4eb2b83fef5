"""Places in a tree as text, and how two trees differ in structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from perspex.base.pytree_registry import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    default_registry,
)

PyTree: TypeAlias = Any
"""Any nest of registered containers; what is not a container is a leaf."""
IsLeaf = Callable[[Any], bool]

ARRAY = type("array", (), {})()  # what errors call a leaf of a value whose axes are given


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Args:
      keys: a key path.
      simple: bare names and numbers instead of Python's notation.
      separator: what stands between the entries.

    Returns:
      A string.

    Raises:
      TypeError: if `keys` is not a sequence.

    >>> path = (DictKey("a"), SequenceKey(0), GetAttrKey("w"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['a'][0].w", 'a/0/w')
    """
    return separator.join([_simple(key) if simple else str(key) for key in keys])


def _simple(key: Any) -> str:
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return str(key.key)
    if isinstance(key, SequenceKey):
        return str(key.idx)
    return str(key.name) if isinstance(key, GetAttrKey) else str(key)


def prefix_errors(
    prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf | None = None, name: str = "prefix_tree"
) -> list[str]:
    """Why one tree is no prefix of another: a sentence for each place, none if it is one.

    Args:
      prefix_tree: the tree that should be a prefix.
      full_tree: any tree.
      is_leaf: a function of a subtree; where it is true the subtree counts as a leaf of the prefix.
      name: what the prefix is called.

    Returns:
      A list of sentences.

    Raises:
      Nothing.

    >>> prefix_errors({"a": (0, 0)}, {"a": (1, 2, 3)}, name="in_axes")
    ["in_axes['a'] is a tuple of length 2, but the value there is a tuple of length 3"]
    """
    found: list[str] = []
    _compare((), prefix_tree, full_tree, is_leaf, (name, "the value there"), False, found)
    return found


def structure_errors(left: PyTreeDef, right: PyTreeDef, name: str, other: str) -> list[str]:
    """How two structures differ: a sentence for each place.

    Args:
      left, right: two structures that are not equal.
      name: what a tree of the structure `left` is called.
      other: what one of the structure `right` is called at a place that differs.

    Returns:
      A list of sentences.

    Raises:
      Nothing.

    >>> from perspex import tree
    >>> a, b = tree.structure({"x": 0}), tree.structure({"x": (0, 0)})
    >>> structure_errors(a, b, "the result of f", "that of g")
    ["the result of f['x'] is an array, but that of g is a tuple"]
    """
    found: list[str] = []
    first, second = [t.unflatten([ARRAY] * t.num_leaves) for t in (left, right)]
    _compare((), first, second, None, (name, other), True, found)
    return found or [f"{name} has the structure {left}, {other} has {right}"]


def _compare(
    path: tuple[Any, ...],
    prefix: Any,
    full: Any,
    is_leaf: IsLeaf | None,
    names: tuple[str, str],
    exact: bool,
    found: list[str],
) -> None:
    """Add to `found` where `prefix` is no prefix of `full`, or with `exact` is not its equal."""
    if is_leaf is not None and is_leaf(prefix):
        return
    node = default_registry.flatten_one_level_with_keys(prefix)
    full_node = default_registry.flatten_one_level_with_keys(full)
    if node is None and (full_node is None or not exact):
        return
    name, other = names
    at, kind = name + keystr(path), _kind(prefix)
    if type(prefix) is not type(full) or node is None or full_node is None:
        found.append(f"{at} is {kind}, but {other} is {_kind(full)}")
        return
    children, data = list(node[0]), node[1]
    full_children, full_data = list(full_node[0]), full_node[1]
    if type(prefix) in (tuple, list) and len(children) != len(full_children):
        found.append(
            f"{at} is {kind} of length {len(children)}, "
            f"but {other} is {kind} of length {len(full_children)}"
        )
        return
    keys = [str(key) for key, _ in children]
    full_keys = [str(key) for key, _ in full_children]
    if keys != full_keys:
        found.append(
            f"{at} is {kind} with the children {' '.join(keys) or 'none'}, "
            f"but {other} has {' '.join(full_keys) or 'none'}"
        )
        return
    if data != full_data:
        found.append(f"{at} is {kind} with the static data {data!r}, but {other} has {full_data!r}")
        return
    for (key, child), (_, full_child) in zip(children, full_children, strict=True):
        _compare((*path, key), child, full_child, is_leaf, names, exact, found)


def _kind(x: Any) -> str:
    """A container, or the type of a leaf, with its article."""
    if x is None:
        return "None"
    noun = type(x).__name__
    return f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"
