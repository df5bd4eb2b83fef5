"""The line that says that an accelerator rounds what it multiplies, where that is compared.

GPUs from NVIDIA's Ampere on multiply float32 as TF32 and TPUs as bfloat16 unless a precision is
asked for. Who compares a result with one in float64 meets differences a thousand times larger than
those of float32, and takes them for a mistake.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

import perspex
from perspex import config
from perspex.base import source
from perspex.ir.jaxpr import Jaxpr, sub_jaxprs
from perspex.ops.precision import DEFAULT
from perspex_magics.compiling.compilations import Compilation, Recorder
from perspex_magics.display import notices
from perspex_magics.display.markup import LINE, coded, tag
from perspex_magics.keys.lineage import expression_at
from perspex_magics.notebook.names import find_names
from perspex_magics.session import Session

# The primitives that multiply, and functions that compare.
_PRODUCTS = {"dot_general", "conv_general_dilated"}
_COMPARES = re.compile(r"(allclose|isclose|equal|equal_nan|almost_equal(_nulp)?|array_max_ulp)$")
# The first generation of GPUs that has TF32.
_FIRST_WITH_TF32 = 8
_MOST_PROGRAMS = 256


class Rounding(NamedTuple):
    """A format to which a device rounds the operands of products, and half its last place."""

    name: str
    error: str


_TF32, _BFLOAT16 = Rounding("TF32", "5e-4"), Rounding("bfloat16", "4e-3")


class Product(NamedTuple):
    """A product of float32 that a device rounds."""

    what: str
    at: source.Source | None
    rounding: Rounding


def rounding(device: Any) -> Rounding | None:
    """What a device makes of float32 in products by default; `None` if nothing is lost."""
    if device.platform == "tpu":
        return _BFLOAT16
    # "9.0"; another number where the GPU is not NVIDIA's.
    major = str(getattr(device, "compute_capability", "")).partition(".")[0]
    is_new = major.isdecimal() and int(major) >= _FIRST_WITH_TF32
    return _TF32 if device.platform in ("gpu", "cuda") and is_new else None


def products_in(jaxpr: Jaxpr) -> Iterator[source.Source | None]:
    """Where a program multiplies float32 at the default precision."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _PRODUCTS:
            is_single = all(v.aval.dtype == np.float32 for v in eqn.invars[:2])
            if is_single and eqn.params["precision"] in (None, DEFAULT):
                yield eqn.source
        for inner in sub_jaxprs(eqn.params):
            yield from products_in(inner.jaxpr)


def compares_with_float64(code: str, namespace: dict[str, Any]) -> bool:
    """Whether a cell compares, or subtracts, and reads an array of float64."""
    try:
        tree = ast.parse(code)
        names = find_names(tree.body)
    except (SyntaxError, ValueError):  # magics
        return False
    doubles = [
        name
        for name in names.reads | names.writes
        if isinstance(x := namespace.get(name), np.ndarray) and x.dtype == np.float64
    ]
    return bool(doubles) and any(map(_compares, ast.walk(tree)))


def _compares(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return _COMPARES.search(called) is not None
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)


class Watcher:
    """Looks at what is compiled until a product is found, and then at cells until one compares."""

    def __init__(self, shell: InteractiveShell, recorder: Recorder) -> None:
        self.shell, self.recorder = shell, recorder
        self.seen = 0
        self.product: Product | None = None
        self.code = ""
        self.told = False

    def begin(self, info: Any) -> None:
        self.code = info.raw_cell or ""

    def end(self, result: Any) -> None:
        if self.told or not config.precision_cards.value:
            return
        if self.product is None:
            new, self.seen = self.recorder.total - self.seen, self.recorder.total
            if new:
                latest = list(self.recorder.done)[-min(new, _MOST_PROGRAMS) :]
                self.product = _rounded(latest)
        if self.product is not None and compares_with_float64(self.code, self.shell.user_ns):
            self.told = True
            _show(self.product)


def _rounded(compiled: Iterable[Compilation]) -> Product | None:
    devices = {str(device): device for device in perspex.local_devices()}
    kinds = {name: found for name, device in devices.items() if (found := rounding(device))}
    for one in compiled if kinds else ():
        closed = one.origin and one.origin.closed()
        kind = kinds.get(one.device)
        if closed is None or kind is None:
            continue
        for at in products_in(closed.jaxpr):
            return Product(expression_at(at) or one.name, at, kind)
    return None


def _show(product: Product) -> None:
    name, error = product.rounding
    text = (
        f"`{product.what}` ({source.summary(product.at)}) multiplies float32 as {name} on this "
        f"device: each factor is rounded, by up to {error} of its size. If float64 is to be met "
        'more closely, pass `precision="highest"`, or set '
        '`perspex.config.update("default_matmul_precision", "highest")` for all products.'
    )
    style = f"border-left:2px solid {LINE};padding:0 8px;margin:2px 0"
    data = {
        "product": product.what,
        "at": source.summary(product.at),
        "rounded_to": name,
        "relative_error": float(error),
    }
    notices.show("precision", data, text, tag("div", coded(text), style=style))


def tell_of_rounding(session: Session, recorder: Recorder) -> None:
    """Say once in a session that a device rounds products, when a cell compares them."""
    watcher = Watcher(session.shell, recorder)
    session.on_cell(watcher.begin, watcher.end)
