"""The key explorer: its numbers are the generator's, and looking is no use of a key."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from support.shells import Notebook
from support.widgets import asked

import perspex
import perspex.numpy as jnp
from perspex import random
from perspex.base import events
from perspex.random import lineage
from perspex_magics.widgets import threefry
from perspex_magics.widgets.distributions import DISTRIBUTIONS, histogram
from perspex_magics.widgets.key_explorer import KeyExplorer, key_explorer
from perspex_magics.widgets.key_tree import MOST_NODES, MOST_SAMPLES, KeyTree, as_shape
from perspex_magics.widgets.refusals import Refused

# From the file `kat_vectors` of the authors' Random123, for 20 rounds.
PUBLISHED = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
# The same after 13 rounds, the last of which is followed by no key.
PUBLISHED_13 = [(0x9D1C5EC6, 0x8BD50731), (0xFD36D048, 0x2D17272C), (0xBA3E4725, 0xF27D669E)]
# What jax 0.12 gives for key 42, with the partitionable layout and the original one.
JAX_SPLIT_3 = {
    True: [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]],
    False: [[3134548294, 3733159049], [3746501087, 894150801], [801545058, 2363201431]],
}
JAX_FOLD_IN_7 = [2547012911, 1371500959]
JAX_BITS_5 = {
    True: [2098992034, 2919706841, 2646866425, 2409546199, 1935504149],
    False: [3134548294, 3733159049, 843694964, 894150801, 801545058],
}
# `k = random.split(random.fold_in(key, 3))[1]`
JAX_PATH = {True: [1914800406, 1741898942], False: [1044708347, 1583696411]}


def tree_of(seed: int = 42, partitionable: bool = True) -> KeyTree:
    return KeyTree([((0, seed), f"random.key({seed})")], partitionable)


def evaluated(code: str) -> Any:
    """What the code that the explorer shows gives."""
    scope: dict[str, Any] = {"random": random, "jnp": jnp}
    exec(code, scope)
    return scope.get("k", scope.get("x"))


# ---- the hash -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("published", "expected"), list(zip(PUBLISHED, PUBLISHED_13, strict=True)))
def test_the_rounds_are_the_published_ones(published: Any, expected: Any) -> None:
    key, counter, _ = published
    (found,) = [s for s in threefry.steps(key, counter) if s.what.startswith("round 13,")]
    assert found.words == expected


@pytest.mark.parametrize(("key", "counter", "expected"), PUBLISHED)
def test_the_hash_is_the_published_one(key: Any, counter: Any, expected: Any) -> None:
    steps = threefry.steps(key, counter)
    assert steps[0].words == counter and steps[-1].words == expected
    assert sum("round" in step.what for step in steps) == 20
    assert sum(step.what.startswith("+ key") for step in steps) == 6


@pytest.mark.parametrize("partitionable", [True, False])
def test_keys_are_those_of_jax(partitionable: bool) -> None:
    tree = tree_of(partitionable=partitionable)
    assert [list(node.words) for node in tree.split(0, 3)] == JAX_SPLIT_3[partitionable]
    assert list(tree.fold_in(0, 7).words) == JAX_FOLD_IN_7
    below = tree.split(tree.fold_in(0, 3).id, 2)[1]
    assert list(below.words) == JAX_PATH[partitionable]
    bits = [threefry.taken(threefry.element((0, 42), i, 5, partitionable))[0] for i in range(5)]
    assert bits == JAX_BITS_5[partitionable]


@pytest.mark.parametrize("partitionable", [True, False])
def test_code_gives_what_is_shown(partitionable: bool) -> None:
    with perspex.threefry_partitionable(partitionable):
        tree = tree_of(2**31 - 1, partitionable)
        for node in [*tree.split(0, 2), *tree.split(0, 5), tree.fold_in(0, 2**32 - 1)]:
            tree.split(node.id, 3)
            tree.fold_in(node.id, 9)
        tree.draw(4, "uniform", "(2, 3)")
        for node, _ in tree.in_order():
            made = evaluated(tree.detail(node.id)["code"])
            if node.kind == "draw":
                assert made.shape == (2, 3)
                np.testing.assert_array_equal(made, node.samples[1])
            else:
                assert tuple(random.key_data(made).tolist()) == node.words


# ---- samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_what_they_are_called(name: str) -> None:
    tree = tree_of(7)
    node = tree.draw(0, name, "(40, 25)")
    samples = node.samples[1].ravel().astype(np.float64)
    reference = {
        "uniform": scipy.stats.uniform(),
        "normal": scipy.stats.norm(),
        "truncated_normal": scipy.stats.truncnorm(-2, 2),
        "exponential": scipy.stats.expon(),
        "laplace": scipy.stats.laplace(),
        "logistic": scipy.stats.logistic(),
        "gumbel": scipy.stats.gumbel_r(),
        "cauchy": scipy.stats.cauchy(),
        "gamma": scipy.stats.gamma(2.0),
        "beta": scipy.stats.beta(2.0, 2.0),
        "bernoulli": scipy.stats.bernoulli(0.3),
        "randint": scipy.stats.randint(0, 10),
        "poisson": scipy.stats.poisson(3.0),
        "bits": scipy.stats.uniform(0, 2.0**32),
    }[name]
    points = np.unique(np.quantile(samples, np.linspace(0, 1, 21)))
    expected = reference.cdf(points)
    below = [DISTRIBUTIONS[name].below(float(x)) for x in points]
    np.testing.assert_allclose(below, expected, atol=1e-9)
    empirical = [(samples <= x).mean() for x in points]
    # Kolmogorov's bound for 1000 samples, at one in ten thousand.
    assert np.abs(empirical - expected).max() < 2.23 / math.sqrt(1000)
    drawn = tree.detail(node.id)["drawn"]
    counted = drawn["histogram"]
    assert sum(counted["counts"]) + counted["outside"] == 1000
    assert sum(counted["expected"]) <= 1000 * (1 + 1e-9)


@pytest.mark.parametrize("partitionable", [True, False])
@pytest.mark.parametrize("name", [n for n, one in DISTRIBUTIONS.items() if one.is_direct])
def test_the_bits_shown_decide_the_element(name: str, partitionable: bool) -> None:
    with perspex.threefry_partitionable(partitionable):
        tree = tree_of(3, partitionable)
        node = tree.draw(0, name, "101")
    values = node.samples[1].astype(np.float64)
    bits = [int(tree.detail(node.id, i)["drawn"]["bits"], 16) for i in range(101)]
    # By the inverse of a distribution function, larger bits give larger numbers, or smaller ones.
    # Floats take the upper 23 bits.
    order = np.argsort(bits if name == "bits" else np.array(bits) >> 9, kind="stable")
    steps = np.diff(values[order])
    assert (steps >= 0).all() or (steps <= 0).all()
    assert len(set(values)) > (1 if name == "bernoulli" else 90)
    if name == "uniform":
        mantissa = (np.array(bits, np.uint32) >> 9) | np.uint32(0x3F800000)
        np.testing.assert_array_equal(mantissa.view(np.float32) - 1, node.samples[1])
    assert tree.detail(node.id, 100)["drawn"]["value"] == f"{values[100]:.6g}" or name in (
        "bernoulli",
        "bits",
    )


def test_histograms_of_few_equal_or_far_numbers() -> None:
    one = histogram(np.array([3.0]), DISTRIBUTIONS["normal"])
    assert sum(one.counts) == 1
    far = histogram(np.array([0.0] * 99 + [1e30]), DISTRIBUTIONS["cauchy"])
    assert far.outside == 1 and sum(far.counts) == 99
    no_elements = tree_of().draw(0, "normal", "(0, 3)")
    assert no_elements.samples[1].shape == (0, 3)


def test_drawing_is_recorded_by_nobody() -> None:
    heard: list[Any] = []
    stop = events.subscribe(heard.append)
    record = lineage.start()
    try:
        tree = tree_of()
        tree.draw(0, "normal", "(7, 3)")
        tree.split(0, 2)
        assert record.calls == [] and heard == []
        random.normal(random.key(0))
        assert [call.function for call in record.calls] == ["key", "normal"] and heard
    finally:
        lineage.stop()
        stop()


# ---- the tree -----------------------------------------------------------------------------------


def test_the_same_bits_are_found_and_keys_used_twice() -> None:
    tree = tree_of()
    first, second = tree.split(0, 2)
    tree.split(0, 3)
    folded = tree.fold_in(0, 1)
    # With a counter for each key, a split into three begins as one into two, and folding in is the
    # same hash.
    alike = tree.alike()
    assert alike[second.id] == alike[folded.id] != alike[first.id]
    assert tree.consumed() == {(0, 42): ["split", "split"]}
    tree.draw(second.id, "normal", "3")
    assert list(tree.consumed()) == [(0, 42)]
    tree.draw(folded.id, "uniform", "3")
    assert tree.consumed()[second.words] == ["normal", "uniform"]
    one, other = tree.draw(first.id, "normal", "4"), tree.draw(first.id, "normal", "4")
    assert tree.alike()[one.id] == tree.alike()[other.id]
    assert "same bits: a" in tree.text() and "reused: split, split" in tree.text()


def test_keys_of_one_split_are_removed_together() -> None:
    tree = tree_of()
    first, second = tree.split(0, 2)
    tree.draw(tree.fold_in(second.id, 1).id, "normal", "3")
    kept = tree.fold_in(0, 5)
    tree.remove(first.id)
    assert set(tree.nodes) == {0, kept.id}
    with pytest.raises(Refused, match="first key cannot be removed"):
        tree.remove(0)


@pytest.mark.parametrize(
    "message",
    [
        {"do": "split", "node": 0, "count": 0},
        {"do": "split", "node": 0, "count": 65},
        {"do": "split", "node": 0, "count": True},
        {"do": "split", "node": 99, "count": 2},
        {"do": "split", "node": [], "count": 2},
        {"do": "fold_in", "node": 0, "number": 2**32},
        {"do": "fold_in", "node": 0, "number": "7"},
        {"do": "draw", "node": 0, "distribution": "__import__", "shape": "3"},
        {"do": "draw", "node": 0, "distribution": "normal", "shape": "1e9"},
        {"do": "draw", "node": 0, "distribution": "normal", "shape": f"{MOST_SAMPLES + 1}"},
        {"do": "draw", "node": 0, "distribution": "normal", "shape": "9" * 5000},
        {"do": "look", "node": None},
        {"do": "remove", "node": 0},
    ],
)
def test_what_cannot_be_done_is_said(message: dict[str, Any]) -> None:
    widget = KeyExplorer(tree_of())
    before = widget.data
    refused = asked(widget, message)
    assert not refused["ok"] and refused["text"].endswith(".") and widget.data == before
    done = asked(widget, {"do": "split", "node": 0, "count": 2})
    assert done == {"request": "r", "ok": True, "text": ""} and len(widget.data["nodes"]) == 3
    assert widget.detail["code"] == "k = random.split(random.key(42))[0]"


@pytest.mark.parametrize("message", [None, "split", 3, {}, {"do": ["x"]}, {"do": "y", "node": 0}])
def test_garbage_changes_nothing(message: Any) -> None:
    widget = KeyExplorer(tree_of())
    before = widget.data
    widget._answer(widget, message, [])
    assert widget.data == before


def test_a_preview_is_what_a_draw_gives_and_is_no_node() -> None:
    widget = KeyExplorer(tree_of())
    asked(widget, {"do": "look", "node": 0, "preview": "normal"})
    expected = np.asarray(random.normal(random.key(42), (1000,)), np.float64)
    preview = widget.detail["preview"]
    assert len(widget.data["nodes"]) == 1 and widget.data["nodes"][0]["used"] == []
    assert preview["facts"]["mean"] == pytest.approx(expected.mean())
    assert preview["facts"]["std"] == pytest.approx(expected.std())
    counts, _ = np.histogram(expected, preview["histogram"]["edges"])
    assert preview["histogram"]["counts"] == counts.tolist()
    asked(widget, {"do": "draw", "node": 0, "distribution": "normal", "shape": "3"})
    asked(widget, {"do": "look", "node": 1, "preview": "normal"})
    assert "preview" not in widget.detail
    asked(widget, {"do": "look", "node": 0, "preview": "<b>"})
    assert "preview" not in widget.detail


def test_there_is_an_end_to_nodes() -> None:
    tree = tree_of()
    for _ in range((MOST_NODES - 1) // 64):
        tree.split(0, 64)
    with pytest.raises(Refused, match="full: 400"):
        tree.split(0, 64)


@pytest.mark.parametrize(
    ("text", "shape"), [("5", (5,)), ("(2,3)", (2, 3)), (" ( 4, ) ", (4,)), ("", ()), ("()", ())]
)
def test_shapes_are_read_as_they_are_written(text: str, shape: tuple[int, ...]) -> None:
    assert as_shape(text) == shape


# ---- keys of a notebook -------------------------------------------------------------------------


def test_what_is_no_key_is_refused() -> None:
    for thing in (3.5, "key", jnp.ones(2), None, True, jnp.ones((2, 3), jnp.uint32)):
        with pytest.raises(TypeError, match="takes a key"):
            key_explorer(thing)
    with pytest.raises(ValueError, match="64 bits"):
        key_explorer(2**70)
    with pytest.raises(ValueError, match="array of keys is empty"):
        key_explorer(random.split(random.key(0), 0))
    gone = random.key(1)
    gone.delete()
    with pytest.raises(ValueError, match="deleted"):
        key_explorer(gone)


@pytest.mark.parametrize("typed", [True, False])
def test_keys_without_a_name_get_code_that_makes_them(
    typed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    make = random.key if typed else random.PRNGKey
    for key in (make(5), random.split(make(5))[1]):
        assert key_explorer(key) is None
        written = capsys.readouterr().out.split("  ")[0]
        made = evaluated(f"k = {written}")
        assert made.dtype == key.dtype
        np.testing.assert_array_equal(random.key_data(made), random.key_data(key))


def test_a_key_of_the_notebook_with_its_uses(notebook: Notebook) -> None:
    notebook.ok("from perspex import random")
    notebook.ok("key, sub = random.split(random.key(0))\nx = random.normal(sub, (3,))")
    notebook.ok("y = random.uniform(sub)")
    notebook.ok("perspex.key_explorer(sub)")
    assert notebook.out.splitlines()[0].startswith("sub  ")
    assert "used by random.normal(sub, (3,))" in notebook.out
    bad = [line for line in notebook.out.splitlines() if "reused" in line]
    assert len(bad) == 2 and all("used by random." in line for line in bad)
    # Looking has been no use.
    notebook.ok("%keys")
    report = repr(notebook.displayed) + notebook.out
    assert "key_explorer" not in report
    notebook.ok("globals()['no name'] = globals()['if'] = other = random.key(7)\ndel other")
    notebook.ok("perspex.key_explorer(globals()['if'])")
    assert notebook.out.startswith("random.key(7)  ")
    notebook.ok("keys = random.split(key, 40)\nperspex.key_explorer(keys)")
    assert "keys[15]  " in notebook.out and "keys[16]" not in notebook.out
    assert "The first 16 of 40 keys." in notebook.out


def test_the_bundle_holds_text_and_html_without_scripts() -> None:
    widget = KeyExplorer(tree_of())
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"] == "random.key(42)  00000000 0000002a"
    assert "0000002a" in data["text/html"] and "<script" not in data["text/html"]
