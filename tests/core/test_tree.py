"""Pytrees: laws that hold for any tree, and the words of the errors.

Behaviour case by case is compared with real JAX in `oracle/cases/tree.txt`.
"""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import pickle
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib._jax import pytree

from perspex import tree
from perspex.base import pytree_registry as containers


class Point(NamedTuple):
    x: Any
    y: Any


def nests(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Trees of all built-in containers."""
    keys = st.text("abc", max_size=2)

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
            st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
            st.dictionaries(keys, inner, max_size=3).map(
                lambda d: collections.defaultdict(list, d)
            ),
            st.builds(Point, inner, inner),
        )

    return st.recursive(st.one_of(leaves, st.none()), grow, max_leaves=12)


NESTS = nests(st.integers())


def reference(node: Any) -> list[Any]:
    """The leaves, from the definition."""
    if node is None:
        return []
    if isinstance(node, collections.OrderedDict):
        children: Any = node.values()
    elif isinstance(node, dict):
        children = [node[key] for key in sorted(node)]
    elif isinstance(node, (list, tuple)):
        children = node
    else:
        return [node]
    return [leaf for child in children for leaf in reference(child)]


# -- Laws


@given(NESTS)
def test_flatten_takes_the_leaves_in_order(nest: Any) -> None:
    found, treedef = tree.flatten(nest)
    assert found == reference(nest) == tree.leaves(nest)
    assert treedef.num_leaves == len(found)
    assert treedef == tree.structure(nest)


@given(NESTS)
def test_unflatten_undoes_flatten(nest: Any) -> None:
    found, treedef = tree.flatten(nest)
    again = tree.unflatten(treedef, found)
    assert again == nest
    assert type(again) is type(nest)
    assert list(again) == list(nest) if isinstance(nest, collections.OrderedDict) else True


@given(NESTS)
def test_map_keeps_the_structure(nest: Any) -> None:
    doubled = tree.map(lambda x: 2 * x, nest)
    assert tree.structure(doubled) == tree.structure(nest)
    assert tree.leaves(doubled) == [2 * x for x in reference(nest)]
    assert tree.map(lambda x, y: x + y, nest, nest) == doubled
    assert tree.map(lambda x: x, nest) == nest


@given(NESTS)
def test_paths_lead_to_the_leaves(nest: Any) -> None:
    pairs, treedef = tree.flatten_with_path(nest)
    assert treedef == tree.structure(nest)
    assert [leaf for _, leaf in pairs] == reference(nest)
    for path, leaf in pairs:
        # The notation is Python's: it leads to the leaf.
        assert eval("nest" + tree.keystr(path), {"nest": nest}) == leaf


@given(NESTS)
def test_structures_pickle_and_copy(nest: Any) -> None:
    treedef = tree.structure(nest)
    for again in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
        assert again == treedef
        assert hash(again) == hash(treedef)


@given(st.lists(st.text("ab", max_size=2), min_size=1))
def test_balanced_reduction_is_the_sequential_one(words: list[str]) -> None:
    assert tree.reduce_associative(lambda x, y: x + y, words) == "".join(words)
    assert tree.reduce(lambda x, y: x + y, words) == "".join(words)


@given(NESTS)
def test_any_tree_is_a_prefix_of_itself(nest: Any) -> None:
    assert tree.prefix_errors(nest, nest) == []
    assert tree.broadcast_prefix(nest, nest) == reference(nest)
    assert tree.broadcast(nest, nest) == nest
    assert tree.broadcast_prefix(7, nest) == [7] * len(reference(nest))


@given(NESTS, NESTS)
def test_prefix_errors_agree_with_the_registry(prefix: Any, full: Any) -> None:
    try:
        tree.structure(prefix).flatten_up_to(full)
    except ValueError:
        assert tree.prefix_errors(prefix, full)
    else:
        assert tree.prefix_errors(prefix, full) == []


# -- Prefixes and axes


def test_axes_for_each_leaf() -> None:
    treedef = tree.structure(({"w": 0, "b": [0, 0]}, 0))
    assert tree.flatten_axes("in_axes", treedef, ({"w": 1, "b": None}, 2)) == [None, None, 1, 2]
    assert tree.flatten_axes("in_axes", treedef, (None, 0)) == [None, None, None, 0]
    assert tree.flatten_axes("in_axes", treedef, 0) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "prefix, full, expected",
    [
        (
            {"a": 1},
            {"b": 1},
            ["in_axes is a dict with the children ['a'], but the value there has ['b']"],
        ),
        (
            {},
            {"b": 1},
            ["in_axes is a dict with the children none, but the value there has ['b']"],
        ),
        ((1, 2), [1, 2], ["in_axes is a tuple, but the value there is a list"]),
        (
            [(1, (2, 3))],
            [(1, 2)],
            ["in_axes[0][1] is a tuple, but the value there is an int"],
        ),
        (Point(1, 2), (1, 2), ["in_axes is a Point, but the value there is a tuple"]),
        (
            # Every place counts, not only the first.
            {"a": (1,), "b": [2], "c": 3},
            {"a": (1, 2), "b": 5, "c": [6]},
            [
                "in_axes['a'] is a tuple of length 1, but the value there is a tuple of length 2",
                "in_axes['b'] is a list, but the value there is an int",
            ],
        ),
    ],
)
def test_prefix_errors_name_the_place(prefix: Any, full: Any, expected: list[str]) -> None:
    assert tree.prefix_errors(prefix, full, name="in_axes") == expected
    with pytest.raises(ValueError, match="in_axes must be a tree prefix of the value") as error:
        tree.broadcast_prefix(prefix, full, name="in_axes")
    assert all(line in str(error.value) for line in expected)


def test_prefix_errors_compare_static_data() -> None:
    class Tagged:
        def __init__(self, tag: str, item: int) -> None:
            self.tag, self.item = tag, item

    tree.register_pytree_node(Tagged, lambda t: ((t.item,), t.tag), lambda tag, i: Tagged(tag, *i))
    assert tree.prefix_errors(Tagged("a", 1), Tagged("b", 1), name="out") == [
        "out is a Tagged with the static data 'a', but the value there has 'b'"
    ]


def test_map_says_which_tree_differs_and_where() -> None:
    good, bad = {"w": (1, 2)}, {"w": (1, 2, 3)}
    with pytest.raises(ValueError, match=r"rest\[1\].*tree\['w'\] is a tuple of length 2"):
        tree.map(lambda *xs: xs, good, good, bad)
    with pytest.raises(ValueError, match=r"map_with_path: rest\[0\].*tree\['w'\]"):
        tree.map_with_path(lambda *xs: xs, good, bad)


def test_errors_of_the_mapped_function_pass_unchanged() -> None:
    def fail(x: int) -> int:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        tree.map(fail, [1])


# -- Dict keys


@pytest.mark.parametrize("take", [tree.flatten, tree.leaves, tree.structure, tree.leaves_with_path])
def test_unsortable_keys_are_named_with_their_place(take: Any) -> None:
    with pytest.raises(ValueError, match=r"of the dict at \['m'\]\[0\] have the types int, str"):
        take({"m": [{1: 0, "a": 0}]})
    with pytest.raises(ValueError, match="those of the dict have the types"):
        take({1: 0, "a": 0})
    assert tree.leaves(collections.OrderedDict([(1, 5), ("a", 6)])) == [5, 6]


def test_what_is_a_leaf_is_not_looked_into() -> None:
    odd = {1: 0, "a": 0}
    assert tree.leaves([odd], is_leaf=lambda x: x is odd) == [odd]


def test_errors_of_a_flatten_function_pass_unchanged() -> None:
    class Broken:
        pass

    def fail(node: Any) -> Any:
        raise ValueError("mine")

    tree.register_pytree_node(Broken, fail, lambda _, children: Broken())
    with pytest.raises(ValueError, match="mine"):
        tree.flatten([Broken()])


# -- Partial


def test_partial_is_a_function_and_a_tree() -> None:
    partial = tree.Partial(lambda x, y, z: (x, y, z), 1, z=3)
    assert partial(2) == (1, 2, 3)
    scaled = tree.map(lambda x: 10 * x, partial)
    assert isinstance(scaled, tree.Partial)
    assert scaled(2) == (10, 2, 30)


def test_a_partial_in_a_partial_keeps_its_own_arguments() -> None:
    inner = functools.partial(max, 1)
    outer = tree.Partial(inner, 2)
    assert tree.leaves(outer) == [2]
    assert outer(0) == 2
    assert tree.structure(outer) == tree.structure(tree.Partial(inner, 5))
    assert tree.structure(outer) != tree.structure(tree.Partial(functools.partial(max, 1), 5))


def test_partials_pickle() -> None:
    partial = tree.Partial(max, 3)
    assert pickle.loads(pickle.dumps(partial))(1) == 3


# -- Surface


def test_the_registry_is_the_one_that_jaxlib_uses_by_default() -> None:
    assert tree.default_registry is pytree.default_registry()
    assert containers.default_registry.flatten(collections.OrderedDict(b=1, a=2))[0] == [1, 2]


def test_both_vocabularies_name_the_same_functions() -> None:
    names = [name.removeprefix("tree_") for name in vars(tree) if name.startswith("tree_")]
    assert len(names) == 13  # those of jax.tree but `static`
    for name in names:
        assert getattr(tree, f"tree_{name}") is getattr(tree, name)
    assert tree.map is not builtins.map
