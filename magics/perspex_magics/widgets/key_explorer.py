"""`perspex.key_explorer(key)`: what `split`, `fold_in` and a draw do with a random key.

Clicks in the view build a tree of keys; Python computes the numbers (`key_tree`). For a key of the
notebook, the view also shows where the notebook made and used it, from the record of `%keys`.
"""

from __future__ import annotations

import itertools
import keyword
from collections.abc import Mapping
from typing import Any

import numpy as np
import traitlets
from markupsafe import Markup

from perspex import config
from perspex.runtime.keys import KeyArray
from perspex_magics.display.markup import MONO, MUTED, escape, shortened, tag
from perspex_magics.keys.magic import story
from perspex_magics.keys.names import numbers_of_keys
from perspex_magics.keys.record import Record
from perspex_magics.panel.widgets import KeyDetail, KeyLine
from perspex_magics.panel.widgets import KeyTree as KeyTreeData
from perspex_magics.session import find
from perspex_magics.widgets.distributions import DISTRIBUTIONS
from perspex_magics.widgets.key_tree import KeyTree
from perspex_magics.widgets.threefry import Words
from perspex_magics.widgets.view import View, shell_here, shown

_MOST_ROOTS = 16
_BAD = "color:var(--jp-error-color1,#d32f2f)"
_GENERATOR = "threefry2x32"


class KeyExplorer(View):
    """The widget. `data` is the tree, `detail` the selected node."""

    module = "keys"

    detail = traitlets.Dict().tag(sync=True)

    def __init__(self, tree: KeyTree, array: Any = None, note: str = "") -> None:
        self._tree, self._array, self._note = tree, array, note
        self._selected = next(iter(tree.nodes))
        super().__init__(data=self._data(), detail=self._detail())

    def on_ask(self, message: dict[str, Any]) -> str:
        tree, id = self._tree, message.get("node")
        made = self._selected
        match message.get("do"):
            case "split":
                made = tree.split(id, message.get("count"))[0].id
            case "fold_in":
                made = tree.fold_in(id, message.get("number")).id
            case "draw":
                made = tree.draw(id, message.get("distribution"), message.get("shape")).id
            case "remove":
                parent = tree.node(id).parent
                tree.remove(id)
                made = made if made in tree.nodes or parent is None else parent.id
            case "look":
                made = tree.node(id).id
        self._selected = made
        detail = self._detail(message.get("index", 0), message.get("preview"))
        with self.hold_sync():
            self.data = dict(self._data())
            self.detail = dict(detail)
        return ""

    def _data(self) -> KeyTreeData:
        return {
            "partitionable": self._tree.partitionable,
            "nodes": self._tree.as_data(),
            "selected": self._selected,
            "distributions": list(DISTRIBUTIONS),
            "note": self._note,
            "notebook": self._notebook(),
        }

    def _detail(self, index: object = 0, preview: object = None) -> KeyDetail:
        tree, id = self._tree, self._selected
        told = tree.detail(id, index)
        if isinstance(preview, str) and preview in DISTRIBUTIONS and tree.node(id).kind != "draw":
            told["preview"] = tree.preview(id, preview)
        return told

    def _notebook(self) -> list[KeyLine]:
        """Where the notebook made and used the first keys."""
        shell = shell_here()
        record = None if shell is None else find(shell, Record)
        if self._array is None or shell is None or record is None:
            return []
        if record.recorder is None or self._array.is_deleted():
            return []
        rows = story(record.lineage, self._array, shell.user_ns, _MOST_ROOTS)
        return [
            {
                "indent": row.indent,
                "text": row.text,
                "place": row.place,
                "remark": row.remark,
                "is_bad": row.is_bad,
            }
            for row in rows
        ]

    @property
    def text(self) -> str:
        lines = [self._tree.text(), self._note]
        for row in self._notebook():
            parts = [row["indent"] + row["text"], row["place"], row["remark"], _reuse(row)]
            lines.append("  ".join(filter(None, parts)))
        return "\n".join(filter(None, lines))

    @property
    def html(self) -> str:
        """The tree and the lines of the notebook as HTML without scripts."""
        tree = self._tree.as_data()
        nodes = [tag("div", _node_html(node), style="white-space:pre") for node in tree]
        lines = [tag("div", _line_html(row), style="white-space:pre") for row in self._notebook()]
        where = tag("div", "In the notebook", style=f"{MUTED};margin-top:6px") if lines else ""
        note = tag("div", escape(self._note), style=MUTED) if self._note else ""
        return tag(
            "div",
            tag("div", *nodes, style=f"{MONO};overflow:auto"),
            note,
            where,
            tag("div", *lines, style=f"{MONO};overflow:auto"),
        )


def _node_html(node: Mapping[str, Any]) -> Markup:
    words = "" if node["kind"] == "draw" else " ".join(node["words"])
    said = [escape("  " * node["depth"]) + tag("strong", escape(shortened(node["label"])))]
    said += [tag("span", escape(words), style=MUTED)] if words else []
    said += [escape(f"same bits: {node['alike']}")] if node["alike"] else []
    if node["used"]:
        said.append(tag("span", escape("reused: " + ", ".join(node["used"])), style=_BAD))
    return Markup("  ").join(said)


def _reuse(row: Mapping[str, Any]) -> str:
    """The word beside the colour, which not everybody sees."""
    return "reused" if row["is_bad"] else ""


def _line_html(row: Mapping[str, Any]) -> Markup:
    said = escape(row["indent"] + shortened(row["text"]))
    rest = [shortened(part) for part in (row["place"], row["remark"], _reuse(row)) if part]
    if row["is_bad"]:
        return tag("span", said, *["  " + part for part in rest], style=_BAD)
    return said + tag("span", escape("".join(["  " + part for part in rest])), style=MUTED)


def key_explorer(key: Any = 0) -> KeyExplorer | None:
    """An explorer for a random key: split it, fold numbers in, draw with it, and see each bit.

    Exploring a key does not count as using it.

    Args:
      key: a key or an array of keys, typed or raw, or the seed of one.

    Returns:
      A widget. Outside of Jupyter, `None`, after printing the same as text.

    Raises:
      TypeError: if `key` is not a key, an array of keys or an integer.
      ValueError: if the key was deleted, the array is empty, the seed has more than 64 bits, or the
        key belongs to another generator than threefry2x32.

    >>> import perspex
    >>> perspex.key_explorer(perspex.random.key(42))
    random.key(42)  00000000 0000002a
    """
    partitionable = bool(config.threefry_partitionable.value)
    if isinstance(key, int) and not isinstance(key, bool):
        words = _words_of_seed(key)
        return shown(KeyExplorer(KeyTree([(words, f"random.key({key})")], partitionable)))
    array = _numbers(key)
    numbers = np.asarray(array)
    shape = numbers.shape[:-1]
    shell = shell_here()
    name = _name_of(key, {} if shell is None else shell.user_ns)
    roots = [
        ((int(numbers[index][0]), int(numbers[index][1])), index)
        for index in itertools.islice(np.ndindex(shape), _MOST_ROOTS)
    ]
    if not roots:
        raise ValueError(f"key_explorer: the array of keys is empty (shape {shape})")
    total = numbers.size // 2
    note = f"The first {len(roots)} of {total:,} keys." if total > len(roots) else ""
    is_typed = key.__class__ is KeyArray
    written = [
        (words, _written(words, is_typed) if not name else name + _index(index))
        for words, index in roots
    ]
    return shown(KeyExplorer(KeyTree(written, partitionable), array, note))


def _words_of_seed(seed: int) -> Words:
    if not -(2**63) <= seed < 2**63:
        raise ValueError(f"key_explorer: the seed {seed} does not fit into 64 bits")
    return (seed >> 32 & 0xFFFFFFFF if config.enable_x64.value else 0), seed & 0xFFFFFFFF


def _numbers(key: Any) -> Any:
    if key.__class__ is KeyArray and key.dtype.generator != _GENERATOR:
        raise ValueError(
            f"key_explorer supports {_GENERATOR} keys; got a key of {key.dtype.generator}"
        )
    array = numbers_of_keys(key)
    if array is None or array.shape[-1] != 2:
        raise TypeError(
            f"key_explorer takes a key, such as random.key(0), or an integer; got a "
            f"{type(key).__name__}"
        )
    if array.is_deleted():
        raise ValueError("key_explorer: the key was deleted, or donated to a compiled function")
    return array


def _name_of(key: Any, namespace: Mapping[str, Any]) -> str:
    """The variable that holds the key, if there is one whose name is valid in code."""
    names = [name for name, x in list(namespace.items()) if x is key]
    found = (name for name in names if name.isidentifier() and not keyword.iskeyword(name))
    return next((name for name in found if not name.startswith("_")), "")


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _written(words: Words, is_typed: bool) -> str:
    """Code that makes a key of these numbers; small seeds are written as seeds."""
    if words[0] == 0 and words[1] < 2**31:
        return f"random.{'key' if is_typed else 'PRNGKey'}({words[1]})"
    array = f"jnp.array([{words[0]}, {words[1]}], dtype='uint32')"
    return f"random.wrap_key_data({array})" if is_typed else array
