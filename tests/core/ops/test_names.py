"""`name`: the identity."""

from __future__ import annotations

from typing import Any

import numpy as np
from support import harness
from support.harness import MOVED, Op, normal, sample

from perspex.ops.names import name_p


def reference(x: np.ndarray, name: str) -> Any:
    return x


OPS = [Op(name_p, reference, [sample(normal(2, 3), name="a")], MOVED, tolerance=0, linear=((0,),))]
test_value, test_staged, test_jvp, test_transpose, test_batch, test_weak = harness.tests(OPS)
