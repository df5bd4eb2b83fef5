"""Pictures: what is drawn is what was measured, computed or drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

import perspex
import perspex.numpy as jnp
from perspex import random
from perspex.random import lineage
from perspex_magics.timing.measuring import measure
from perspex_magics.timing.roofline import Peak
from perspex_magics.widgets import plot

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_arrays_plot_directly() -> None:
    x = jnp.linspace(0, 1, 7)
    _, axes = pyplot.subplots()
    (line,) = axes.plot(x, x**2)
    np.testing.assert_allclose(line.get_xydata(), np.c_[np.asarray(x), np.asarray(x) ** 2])
    shown = axes.imshow(jnp.eye(3)).get_array()
    np.testing.assert_array_equal(shown, np.eye(3))
    counts = axes.hist(jnp.array([1.0, 1.0, 2.0]), bins=2)[0]
    np.testing.assert_array_equal(counts, [2, 1])
    (line,) = axes.plot(jnp.ones(2, jnp.bfloat16))
    np.testing.assert_array_equal(line.get_ydata(), [1, 1])


def test_derivatives() -> None:
    xs = jnp.linspace(-3.0, 3.0, 50)
    axes = perspex.plot.derivatives(jnp.sin, xs, order=4)
    x = np.asarray(xs, np.float64)
    expected = [np.sin(x), np.cos(x), -np.sin(x), -np.cos(x), np.sin(x)]
    for line, values in zip(axes.lines, expected, strict=False):
        np.testing.assert_allclose(line.get_ydata(), values, atol=1e-6)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["sin", "sin′", "sin′′", "sin′′′", "sin$^{(4)}$"]
    with pytest.raises(ValueError, match="vector of numbers"):
        perspex.plot.derivatives(jnp.sin, 1.0)


def test_timings_draw_all_runs_but_those_they_count() -> None:
    measured = measure(lambda x: x + 1, jnp.ones(3), seconds=0.05)
    _, given = pyplot.subplots()
    axes = perspex.plot.timings(measured, ax=given)
    assert axes is given
    drawn = sum(patch.get_height() for patch in axes.patches)
    longer = int(axes.get_xlabel().split("; ")[1].split(" of ")[0])
    assert drawn + longer == len(measured.total)


@pytest.mark.parametrize("make", [random.key, random.PRNGKey])
def test_key_bits_are_those_of_the_keys(make: Any) -> None:
    record = lineage.start()
    try:
        key = make(1)
        axes = perspex.plot.key_bits(key, 6)
        assert [call.function for call in record.calls] in (["key"], ["PRNGKey"])
    finally:
        lineage.stop()
    words = np.asarray(random.key_data(random.split(key, 6))).tolist()
    expected = [[int(bit) for word in row for bit in f"{word:032b}"] for row in words]
    np.testing.assert_array_equal(axes.images[0].get_array(), expected)


def test_the_roofline_has_the_work_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    # Peaks of a machine that is easy to reckon with; measuring them is tested elsewhere.
    most = Peak(flops=1e15, bytes=1e12)
    monkeypatch.setattr(plot, "peak", lambda dtype: most)
    x = jnp.ones((64, 64))
    axes = plot.roofline(lambda x: x @ x, x, seconds=0.02)
    roof, point = axes.lines
    np.testing.assert_allclose(roof.get_ydata()[[0, -1]], [1e12, 1e15])
    intensity = point.get_xdata()[0]
    # 64 * 64 * (64 products and as many sums) over two readings of x and one writing of 16 kB, or
    # one reading where XLA counts that.
    flops = 2 * 64**3
    assert flops / (3 * 4 * 64**2) * 0.99 <= intensity <= flops / (2 * 4 * 64**2) * 1.01
    assert 0 < point.get_ydata()[0] < 1e15
    assert len(plot.roofline(lambda x: x + x, x, seconds=0.02, ax=axes).lines) == 3
    with pytest.raises(ValueError, match="not known how much work `nothing` does"):

        def nothing(x: Any) -> Any:
            return x

        plot.roofline(nothing, x, seconds=0.02)
