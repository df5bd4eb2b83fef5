"""The structure of a tree, and one level of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from perspex.base.pytree_registry import PyTreeDef, default_registry
from perspex.base.tree_paths import PyTree
from perspex.base.xla import pytree as _pytree


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees.

    Args:
      treedefs: the structures of the trees.

    Returns:
      A `PyTreeDef`.

    Raises:
      RuntimeError: if the argument is not a `PyTreeDef`.

    >>> from perspex import tree
    >>> treedef_tuple([tree.structure(1), tree.structure([1])])
    PyTreeDef((*, [*]))
    """
    return _pytree.treedef_tuple(default_registry, list(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    Args:
      treedef: a structure.

    Returns:
      A list of structures; empty for a leaf.

    Raises:
      AttributeError: if the argument is not a `PyTreeDef`.

    >>> from perspex import tree
    >>> treedef_children(tree.structure((1, [2, 3])))
    [PyTreeDef(*), PyTreeDef([*, *])]
    """
    return list(treedef.children())


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single node: a leaf, `None` or an empty container.

    Args:
      treedef: a structure.

    Returns:
      True or False.

    Raises:
      AttributeError: if the argument is not a `PyTreeDef`.

    >>> from perspex import tree
    >>> treedef_is_leaf(tree.structure(1)), treedef_is_leaf(tree.structure([1]))
    (True, False)
    """
    return bool(treedef.num_nodes == 1)


def is_tree_node(typ: type) -> bool:
    """Whether instances of a type are containers.

    Args:
      typ: a class.

    Returns:
      True or False.

    Raises:
      Nothing.

    >>> is_tree_node(dict), is_tree_node(str)
    (True, False)
    """
    return bool(default_registry.is_node(typ))


def flatten_one_level(tree: PyTree) -> tuple[Iterable[Any], Hashable]:
    """The children of a container, and the static data that it needs to be built again.

    Args:
      tree: a container.

    Returns:
      `(children, static data)`.

    Raises:
      ValueError: for a leaf.

    >>> flatten_one_level({"b": 1, "a": [2]})
    (([2], 1), ('a', 'b'))
    """
    found: tuple[Iterable[Any], Hashable] | None = default_registry.flatten_one_level(tree)
    if found is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}; it is a leaf")
    return found


def flatten_one_level_with_keys(
    tree: PyTree,
) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The children of a container with their entries of a key path, and its static data.

    Args:
      tree: a container.

    Returns:
      `(pairs of entry and child, static data)`.

    Raises:
      ValueError: for a leaf.

    >>> flatten_one_level_with_keys((5,))
    (((SequenceKey(idx=0), 5),), None)
    """
    found: tuple[Iterable[tuple[Any, Any]], Hashable] | None
    found = default_registry.flatten_one_level_with_keys(tree)
    if found is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}; it is a leaf")
    return found
