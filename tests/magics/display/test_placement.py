"""Pictures of arrays over several devices say where each number is, and cost next to nothing."""

from __future__ import annotations

import html.parser
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.shells import Notebook

import perspex
import perspex.numpy as jnp
from perspex_magics.display.placement import (
    devices_text,
    placement_html,
    placement_of,
    placement_text,
    visualize_array_sharding,
)

ROOT = Path(__file__).resolve().parents[3]

# Shape, the names of the mesh's axes with their sizes, the axes that cut.
CASES: dict[str, tuple[tuple[int, ...], dict[str, int], tuple[Any, ...]]] = {
    "a row": ((16,), {"x": 2, "y": 4}, ("y",)),
    "a grid": ((6, 8), {"x": 2, "y": 4}, ("x", "y")),
    "across the other way": ((8, 6), {"x": 2, "y": 4}, ("y", "x")),
    "rows with copies": ((6, 8), {"x": 2, "y": 4}, ("x", None)),
    "columns with copies": ((6, 8), {"x": 2, "y": 4}, (None, "y")),
    "two axes cut one": ((16, 3), {"x": 2, "y": 4}, (("y", "x"), None)),
    "one of three axes": ((4, 3, 2), {"x": 2, "y": 4}, ("y",)),
    "two of four axes": ((3, 4, 2, 8), {"x": 2, "y": 4}, (None, "x", None, "y")),
    "the page": ((1200, 800), {"x": 2, "y": 4}, ("x", "y")),
    "three axes": ((4, 4, 6), {"a": 2, "b": 2, "c": 2}, ("a", "c", "b")),
}

CHILD = """
import json, sys, numpy as np, perspex
perspex.config.update("num_cpu_devices", 8)
from perspex.sharding import NamedSharding, PartitionSpec
from perspex_magics.display.arrays import array_html, keys_html
from perspex_magics.display.placement import placement_html, placement_of, placement_text
told = {}
def put(x, mesh, spec):
    spec = PartitionSpec(*[tuple(s) if isinstance(s, list) else s for s in spec])
    mesh = perspex.make_mesh(tuple(mesh.values()), tuple(mesh), perspex.sharding.AxisType.Auto)
    return perspex.device_put(x, NamedSharding(mesh, spec))
for name, (shape, mesh, spec) in json.loads(sys.argv[1]).items():
    x = put(np.arange(np.prod(shape), dtype=np.int32).reshape(shape), mesh, spec)
    placement = placement_of(x.shape, x.sharding)
    told[name] = {
        "html": placement_html(placement),
        "text": placement_text(placement),
        "array": array_html(x),
        "shards": [[s.device.id, np.asarray(s.data).tolist()] for s in x.addressable_shards],
    }
whole = put(np.arange(12.0, dtype=np.float32), {"x": 8}, ())
told["whole"] = array_html(whole)
keys = perspex.random.split(perspex.random.key(0), 16)
told["keys"] = keys_html(put(keys, {"x": 2, "y": 4}, ("y",)))
big = np.arange(1200 * 600, dtype=np.float32).reshape(1200, 600)
x = put(big, {"x": 2, "y": 4}, ("x", "y")).block_until_ready()
copied = put(big[:100].astype(np.int32), {"x": 8}, (None,)).block_until_ready()
seen = np.asarray
np.asarray = None  # nothing may be put together
told["big"], told["copied"] = array_html(x), array_html(copied)
np.asarray = seen
told["cached"] = x._npy_value is not None
x.delete()
told["deleted"] = array_html(x)
print(json.dumps(told))
"""


@cache
def told() -> dict[str, Any]:
    """What a process with eight devices says."""
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "magics")])
    out = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(CASES)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


# What an untrusted notebook keeps.
TAGS = {"div", "span", "strong", "table", "caption", "tr", "th", "td", "details", "summary"}
ATTRIBUTES = {"style", "scope", "open"}


class Tables(html.parser.HTMLParser):
    """All tables as rows of texts, each with the last summary before it, and all text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[list[str]]]] = []
        self.captions: list[str] = []
        self.inside: list[str] = []
        self.summary = self.text = ""
        self.feed(markup)
        self.close()
        assert not self.inside

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS and {name for name, _ in attrs} <= ATTRIBUTES
        self.inside.append(tag)
        if tag == "table":
            self.found.append((self.summary, []))
        elif tag == "tr":
            self.found[-1][1].append([])
        elif tag in ("td", "th"):
            self.found[-1][1][-1].append("")
        elif tag == "summary":
            self.summary = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "caption" in self.inside:
            self.captions.append(data)
        elif "tr" in self.inside:
            self.found[-1][1][-1][-1] += data
        elif "summary" in self.inside:
            self.summary += data


def ranges(text: str) -> slice:
    start, stop = map(int, text.split(":"))
    return slice(start, stop)


def devices(text: str) -> list[int]:
    if "–" in text:
        first, last = map(int, text.split("–"))
        return list(range(first, last + 1))
    return [int(number) for number in text.split(", ")]


def parts(markup: str, rank: int) -> dict[int, tuple[slice, ...]]:
    """What the picture says: of each device, which part of the array it has."""
    tables = Tables(markup)
    said: dict[int, tuple[slice, ...]] = {}
    for (label, rows), caption in zip(tables.found, tables.captions, strict=True):
        index = [slice(None)] * rank
        if label.startswith("["):
            for axis, text in enumerate(label.strip("[]").split(", ")):
                index[axis] = slice(None) if text == ":" else ranges(text)
        ways = dict(re.findall(r"axis (\d) (down|across)", caption))
        by_way = {way: int(axis) for axis, way in ways.items()}
        head, *lines = rows
        for line in lines:
            if "down" in by_way:
                index[by_way["down"]] = ranges(line.pop(0))
            for column, cell in zip(head[-len(line) :], line, strict=True):
                index[by_way["across"]] = ranges(column)
                for device in devices(cell):
                    assert device not in said
                    said[device] = tuple(index)
    return said


@pytest.mark.parametrize("name", CASES)
def test_the_picture_says_where_each_number_is(name: str) -> None:
    shape, _, _ = CASES[name]
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    case = told()[name]
    said = parts(case["html"], x.ndim)
    assert sorted(said) == list(range(8)) and len(case["shards"]) == 8
    for device, data in case["shards"]:
        np.testing.assert_array_equal(x[said[device]], data)
    assert case["html"] in case["array"]


def test_the_picture_in_words() -> None:
    for name, words in {
        "a grid": "8 parts of [3, 2], one on each device",
        "rows with copies": "2 parts of [3, 8], each on 4 devices",
        "three axes": "8 parts of [2, 2, 3], one on each device",
    }.items():
        assert words in told()[name]["html"]
        assert told()[name]["text"].startswith(f"cpu:0–7 · {words}\n")
    whole = Tables(told()["whole"])
    assert "whole on each of 8 devices" in whole.text and len(whole.found) == 1  # the values
    assert "float32[1200, 600] · deleted" in Tables(told()["deleted"]).text


def test_the_picture_as_text() -> None:
    assert told()["columns with copies"]["text"].splitlines() == [
        "cpu:0–7 · 4 parts of [6, 2], each on 2 devices",
        "      0:2    2:4    4:6    6:8",
        "    ┌──────┬──────┬──────┬──────┐",
        "0:6 │ 0, 4 │ 1, 5 │ 2, 6 │ 3, 7 │",
        "    └──────┴──────┴──────┴──────┘",
        "numbers of devices · axis 0 down · axis 1 across",
    ]


def test_keys_lie_somewhere_too() -> None:
    said = parts(told()["keys"], 1)
    quarters = [slice(i, i + 4) for i in range(0, 16, 4)]
    assert [said[device][0] for device in range(8)] == quarters * 2


def test_the_page_shows_such_a_text() -> None:
    page = (ROOT / "docs" / "widgets.md").read_text(encoding="utf-8")
    assert f"```\n{told()['the page']['text']}\n```" in page


def test_big_arrays_are_read_where_their_parts_lie() -> None:
    x = np.arange(1200 * 600, dtype=np.float32).reshape(1200, 600)
    markup = told()["big"]
    assert not told()["cached"]
    (_, _), (_, (_, *rows)) = Tables(markup).found
    ends = [0, 1, 2, 3, 4, None, -5, -4, -3, -2, -1]
    for i, row in zip(ends, rows, strict=True):
        for j, text in zip(ends, row[1:], strict=True):
            assert text == ("⋯" if i is None or j is None else f"{x[i, j]:.5g}")
    # Every ninth element (720,000 / 100,000, made odd) of each part of 600 x 150.
    found = np.concatenate(
        [part.reshape(-1)[::9] for half in np.split(x, 2) for part in np.split(half, 4, axis=1)]
    ).astype(np.float64)
    said = f"1 in 9 of 720,000 elements: min {found.min():.4g} · mean {found.mean():.4g}"
    assert said in Tables(markup).text
    # Of copies one is read.
    assert f"min 0 · mean {59999 / 2:.4g} · max 6e+04" in Tables(told()["copied"]).text


class Device:
    """What a picture needs to know of a device."""

    platform = "cpu"

    def __init__(self, number: int) -> None:
        self.id = number


class Cut:
    """A sharding over a grid of as many devices as wanted, which cuts the leading axes."""

    def __init__(self, *grid: int) -> None:
        self.grid = np.arange(np.prod(grid)).reshape(grid)

    def devices_indices_map(self, shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
        found = {}
        for at, number in np.ndenumerate(self.grid):
            index = [slice(None)] * len(shape)
            for axis, (i, k) in enumerate(zip(at, self.grid.shape, strict=True)):
                if axis < len(shape) and k > 1:
                    size = shape[axis] // k
                    index[axis] = slice(i * size, (i + 1) * size)
            found[Device(int(number))] = tuple(index)
        return found


@pytest.mark.parametrize("grid", [(64,), (512,), (16, 32), (8, 8, 8)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_many_devices_stay_readable(grid: tuple[int, ...], rank: int) -> None:
    placement = placement_of((1024,) * rank, Cut(*grid))
    markup, text = placement_html(placement), placement_text(placement)
    assert len(markup) < 60_000
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) < 90
    # The first and the last device are named, and that some are left out is said.
    last = int(np.prod(grid)) - 1
    cells = [cell for _, rows in Tables(markup).found for row in rows for cell in row]
    assert re.fullmatch(r"0(\D.*)?", next(c for c in cells if c and ":" not in c and c != "⋯"))
    assert re.search(rf"\b{last}\b", cells[-1])
    is_cut_short = max(grid[:rank]) > 9 or len(grid[:rank]) > 2
    assert ("⋯" in markup) == is_cut_short and ("⋯" in text or not is_cut_short)


def test_devices_in_a_few_words() -> None:
    assert devices_text([Device(3), Device(2), Device(4)]) == "cpu:2–4"
    assert devices_text([Device(0), Device(2), Device(4)]) == "3 devices"


def test_a_notebook_shows_the_table(notebook: Notebook) -> None:
    notebook.ok("perspex.debug.visualize_array_sharding(jnp.ones((4, 2)))")
    assert "0:4 │  0  │" in notebook.out and not notebook.displayed
    notebook.shell.kernel = object()
    try:
        notebook.ok("perspex.debug.visualize_sharding((4, 2), jnp.ones(3).sharding)")
    finally:
        del notebook.shell.kernel
    (shown,) = notebook.displayed
    assert Tables(shown["text/html"]).found[0][1][-1] == ["0:4", "0"]
    assert "0:4 │  0  │" in shown["text/plain"]


def test_a_traced_value_is_nowhere_yet() -> None:
    with pytest.raises(TypeError, match=r"not yet chosen.*float32\[3\]"):
        perspex.jit(visualize_array_sharding)(jnp.ones(3))
