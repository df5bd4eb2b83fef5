"""`perspex.plot`: a few honest pictures, with matplotlib.

Each function draws into the axes that it is given, or into new ones, and returns them. matplotlib
is loaded by the first of them that is called. Arrays themselves need nothing of this: matplotlib
takes them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perspex.api.differentiation import grad
from perspex.api.jit import jit
from perspex.api.mapping import vmap
from perspex.base import events
from perspex.random import lineage
from perspex.random.keys import key_data, split
from perspex_magics.display.units import duration
from perspex_magics.timing.measuring import Measured, measure
from perspex_magics.timing.roofline import peak, work

# Runs that take longer than nearly all others are counted and not drawn.
_SHOWN = 0.95
_BARS = 40
_ROOF = "measured peak"
_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def timings(
    fun: Callable[..., Any] | Measured, *args: Any, seconds: float = 1.0, ax: Any = None, **kw: Any
) -> Any:
    """How long the calls of a function take, as a histogram with its median.

    Args:
      fun: a function of `args` and `kw`, which is measured as `perspex.timings` does; or what that
        has measured.
      seconds: how long to measure.
      ax: where to draw.

    Returns:
      The axes.
    """
    given: Any = getattr(fun, "measured", fun)
    if not isinstance(given, Measured):
        given = measure(given, *args, seconds=seconds, **kw)
    total = given.total
    median, most = float(np.median(total)), float(np.quantile(total, _SHOWN))
    unit, size = next(((u, s) for u, s in _UNITS if median >= s), _UNITS[-1])
    axes = _axes(ax)
    least = float(total.min())
    edges = np.linspace(least, max(most, 1.01 * least), _BARS + 1)
    axes.hist(total / size, bins=edges / size)
    label = f"median {duration(median)}"
    axes.axvline(median / size, color="C1", linewidth=1.5, label=label)
    longer = int((total > edges[-1]).sum())
    axes.set_xlabel(f"call and wait ({unit}); {longer} of {len(total)} runs took longer")
    axes.set_ylabel("runs")
    axes.set_title(f"{given.name}({given.signature})")
    axes.legend()
    return axes


def roofline(
    fun: Callable[..., Any], *args: Any, seconds: float = 1.0, ax: Any = None, **kw: Any
) -> Any:
    """What a function achieves against what this machine can do, as measured in this session.

    Once more with the same axes puts another function beside it.

    Args:
      fun: a function of `args` and `kw`; it is called many times.
      seconds: how long to measure.
      ax: where to draw.

    Returns:
      The axes: operations in a second against operations for each byte, both logarithmic.

    Errors:
      `ValueError` for a program of which it is not known how much it does, such as one with loops.
    """
    compiled: Any = fun if hasattr(fun, "trace") else jit(fun)
    measured = measure(compiled, *args, seconds=seconds, **kw)
    with events.unheard():
        traced = compiled.trace(*args, **kw)
        xla = traced.lower().compile().runtime_executable()
    done = work(traced.jaxpr, xla)
    found = None if done is None else done.taking(float(np.median(measured.total)))
    if found is None:
        raise ValueError(f"plot.roofline: it is not known how much work `{measured.name}` does")
    most = peak(found.dtype)
    ridge = most.flops / most.bytes
    axes = _axes(ax)
    if not any(line.get_label() == _ROOF for line in axes.lines):
        ends = np.geomspace(ridge / 1e3, ridge * 1e3, 61)
        axes.plot(ends, [most.limit(float(x)) for x in ends], color="gray", label=_ROOF)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("FLOPs per byte")
        axes.set_ylabel("FLOP/s")
    label = f"{measured.name}: {100 * found.part(most):.3g} % of what is possible"
    axes.plot([found.intensity], [found.achieved], "o", label=label)
    axes.legend()
    return axes


def derivatives(fun: Callable[[Any], Any], xs: Any, *, order: int = 2, ax: Any = None) -> Any:
    """A function of one number, with its derivatives.

    Args:
      fun: from a scalar to a scalar.
      xs: the numbers to evaluate it at: a vector of floats.
      order: how many derivatives.
      ax: where to draw.

    Returns:
      The axes, with a line for the function and one for each derivative.

    Errors:
      `ValueError` if `xs` is no vector, and as `grad` for a function without derivative.
    """
    if np.ndim(xs) != 1:
        raise ValueError(f"plot.derivatives takes a vector of numbers, got shape {np.shape(xs)}")
    axes = _axes(ax)
    name = getattr(fun, "__name__", "f")
    label = "f" if name == "<lambda>" else name
    for n in range(order + 1):
        axes.plot(xs, vmap(fun)(xs), label=label + ("′" * n if n <= 3 else f"$^{{({n})}}$"))
        fun = grad(fun)
    axes.axhline(0, color="gray", linewidth=0.5)
    axes.set_xlabel("x")
    axes.legend()
    return axes


def key_bits(key: Any, n: int = 64, *, ax: Any = None) -> Any:
    """The bits of the keys that a key is split into: a row for each, dark where a bit is one.

    It is no use of the key.

    Args:
      key: one key, typed or raw.
      n: how many keys.
      ax: where to draw.

    Returns:
      The axes.
    """
    with events.unheard(), lineage.unrecorded():
        words = np.asarray(key_data(split(key, n)))
    axes = _axes(ax)
    axes.imshow(bits_of(words), cmap="Greys", vmin=0, vmax=1, interpolation="none", aspect="auto")
    axes.set_xlabel("bit")
    axes.set_ylabel("key")
    axes.set_title(f"random.split(key, {n})")
    return axes


def bits_of(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of rows of 32-bit words, the highest first.

    >>> bits_of(np.array([[1, 1 << 31]], np.uint32))[0].nonzero()[0].tolist()
    [31, 32]
    """
    return np.unpackbits(words.astype(">u4").view(np.uint8), axis=-1)


def _axes(given: Any) -> Any:
    if given is not None:
        return given
    from matplotlib import pyplot

    return pyplot.subplots()[1]
