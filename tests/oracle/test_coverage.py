"""Which operations the matrix of transforms asks real JAX about, and why not about the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from core.ops.test_completeness import PRIMITIVES, defines

import perspex
from perspex.ir.jaxpr import sub_jaxprs

from .cases import load
from .evaluate import Library

# Those with a derivative that no case of `compositions` leads to.
REASONS = {
    "real JAX has no derivative of it": """
        cholesky_update composite ffi_call householder_product igamma_grad_a io_callback linear_call
        ormqr pbroadcast pmax pmin reduce_window symmetric_product
    """,
    "along a named axis: with the axis mapped, as by `across`, it is another operation": """
        all_gather all_to_all axis_index ppermute psum reduce_scatter
    """,
    "real JAX exchanges rows on GPUs alone, and not along a mapped axis": "ragged_all_to_all",
    "holds no numbers, or gives none": "after_all create_token dce_sink",
    "compared in `cases/products.txt` and `cases/staged_values.txt`": """
        approx_top_k ragged_dot_general
    """,
    "the matrix itself takes checkpoints": "remat2",
    "a scatter that drops what is outside, which `nonzero` and `repeat` mean to": """
        scatter_add_inside scatter_inside
    """,
    "gone when a program is written; compared in `cases/checkify.txt`": "check",
    "gone when a program is written, or transposed": "custom_call custom_lin",
    "gives integers, booleans, bits or keys: its derivative is zero": """
        argmin clz eq_to le_to lt_to lu_pivots_to_permutation mulhi population_count random_clone
        random_fold_in random_unwrap random_wrap reduce_and reduce_xor rng_bit_generator shift_left
        shift_right_arithmetic threefry2x32 threefry4x32 philox2x32 philox4x32 xor
    """,
    "prints, and is otherwise `debug_callback`": "debug_print",
    "JAX's slope by a is wrong for some x: a test of `scipy.special` has finite differences": """
        hyp1f1_by_a hyp1f1_by_b
    """,
    "an identity: compared in `cases/memories.txt`": "device_put",
    "compared in `cases/attributes.txt`": "compute_on xla_metadata_value",
    "has no results: compared in `recorders/meshes.py`": "inspect_sharding",
    "needs several devices: compared in `recorders/shardings.py`": "sharding_constraint",
    "needs several devices: compared in `recorders/explicit_axes.py`": "reshard",
    "needs several devices: compared in `recorders/device_collectives.py`": "all_gather_invariant",
    "needs several devices: compared in `recorders/shard_maps.py`": """
        psum_invariant pvary shard_map
    """,
    "needs several devices: compared in `recorders/device_types.py`": """
        all_gather_reduced preduced reduced_vary_cast unreduced_psum unreduced_reduce_scatter
        vary_unreduced_cast
    """,
    "needs several devices: compared in `recorders/device_explicit.py`": """
        unreduced_pmax unreduced_pmin
    """,
}
WHY = {name: why for why, names in REASONS.items() for name in names.split()}


def reached() -> set[str]:
    """The operations of the functions in `compositions`, of their derivatives and gradients."""
    names: set[str] = set()

    def walk(jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            names.add(eqn.primitive.name)
            for sub in sub_jaxprs(eqn.params):
                walk(sub.jaxpr)

    def matrix(f: Any, dtype: str = "float32", without: Any = ()) -> None:
        x = np.linspace(0.2, 0.9, 12, dtype=np.float32).reshape(3, 4).astype(dtype)
        if "jvp" not in without:
            walk(perspex.make_jaxpr(lambda x: perspex.jvp(f, (x,), (x,)))(x).jaxpr)
        if "grad" not in without:
            walk(perspex.make_jaxpr(lambda x: perspex.vjp(f, x)[1](f(x)))(x).jaxpr)

    table = load("compositions")
    namespace = Library("perspex").namespace(table.setup) | {"matrix": matrix}
    for case in table.cases:
        eval(compile(case.source, "<case>", "eval"), namespace)
    return names


def test_every_operation_with_a_derivative_is_compared_or_excused() -> None:
    found = reached()
    known = {p.name for p in PRIMITIVES if defines(p, "jvp")}
    assert not known - found - WHY.keys(), "neither compared with real JAX nor excused"
    assert not WHY.keys() & found, "these are reached: take them off the list"
