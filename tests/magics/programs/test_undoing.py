"""A cell that fails while it is traced leaves objects as they were."""

from __future__ import annotations

import numpy as np
from support.shells import Notebook

from perspex.errors import TracerBoolConversionError


def test_attributes_are_put_back(notebook: Notebook) -> None:
    notebook.ok(
        "class O: pass\no = O()\no.v, o.p, o.gone = jnp.ones(3), {'q': [jnp.zeros(2)]}, 1\n"
        "x = jnp.ones(2)"
    )
    notebook.fails(
        "%%jit\no.v = o.v * x.sum()\no.p['q'][0] = x\no.p['r'] = x\no.new = x\ndel o.gone\n"
        "if x.sum() > 0:\n    raise ValueError",
        TracerBoolConversionError,
    )
    o = notebook.ns["o"]
    assert vars(o).keys() == {"v", "p", "gone"} and o.p.keys() == {"q"}
    assert np.array_equal(o.v, [1, 1, 1]) and np.array_equal(o.p["q"][0], [0, 0])


def test_a_cell_that_waits_is_refused(notebook: Notebook) -> None:
    notebook.ok("import asyncio\nx = jnp.ones(2)")
    notebook.run("%%jit\nawait asyncio.sleep(0)\ny = x")
    assert "`await`" in notebook.out and "SyntaxError" not in notebook.out
    assert "y" not in notebook.ns
