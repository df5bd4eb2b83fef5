"""Every primitive has all its rules, except where the table says why there can be none."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from typing import Any

import numpy as np
import pytest

import perspex.control
import perspex.jitted
import perspex.ops
import perspex.rules
from perspex.ops import bessel, elementwise
from perspex.ops.families import BITS, COMPLEX, INTEGER, Elementwise, as_bool
from perspex.tracing.primitive import Primitive


def all_primitives() -> list[Primitive]:
    found: dict[int, Primitive] = {}
    for package in (perspex.ops, perspex.control, perspex.rules, perspex.jitted):
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Primitive):
                    found[id(value)] = value
    return sorted(found.values(), key=lambda p: p.name)


def is_homogeneous(row: Elementwise) -> bool:
    """Whether the result of a row scales with an operand or with all of them, to the last bit."""
    if row.kind in (INTEGER, BITS) or row.out_dtype is as_bool:
        return False
    dtype = np.complex64 if row.kind == COMPLEX else np.float32
    factors = np.array([1, -1, 2, 64], dtype)
    numbers = [dtype(0.21 + 0.3 * i) for i in range(len(row.jvps))]
    for scaled in [*[{i} for i in range(len(numbers))], set(range(len(numbers)))]:
        operands = [x * factors if i in scaled else x for i, x in enumerate(numbers)]
        out = np.asarray(row(*operands, **PARAMS.get(row, {})))
        if np.array_equal(out, out[0] * factors.real):
            return True
    return False


PARAMS: dict[Elementwise, dict[str, Any]] = {
    bessel.bessel_i: {"order": 1},
    elementwise.integer_pow: {"y": 3},
    elementwise.reduce_precision: {"exponent_bits": 8, "mantissa_bits": 10},
    elementwise.round: {"rounding_method": 0},
}
PRIMITIVES = all_primitives()
BY_NAME = {p.name: p for p in PRIMITIVES}


def defines(primitive: Primitive, rule: str) -> bool:
    if rule == "transpose" and isinstance(primitive, Elementwise):
        return primitive.transposed is not None or not is_homogeneous(primitive)
    return getattr(type(primitive), rule) is not getattr(Primitive, rule)


# A transpose belongs to linear operations. The program of a derivative is linear in the tangents,
# and these do not occur on the way from a tangent to the result. Elementwise rows are not listed:
# `is_homogeneous` finds those that are linear, and the tests of each row transpose its derivative.
NOT_LINEAR = {
    "its derivative is taken to be zero, or that of something else": """
        gamma_sample log_gamma_sample nextafter rem stop_gradient
    """,
    "a choice by value: its derivative selects or gathers": """
        approx_top_k argmax argmin clamp cummax cummin pmax pmin reduce_max reduce_min
        reduce_window_max reduce_window_min sort top_k unreduced_pmax unreduced_pmin
    """,
    "gives booleans": "reduce_and reduce_or reduce_xor",
    "takes bits apart": "bitcast_convert_type",
    "combines elements: its derivative is a tree of steps, or the other products": """
        cumlogsumexp cumprod reduce reduce_prod reduce_window
    """,
    "a solution of an equation: its derivative solves a linear one": "custom_root",
    "a factorization of a matrix, or a number of it: its derivative solves with the factors": """
        adjugate cholesky cholesky_update det eig eigh geqrf hessenberg householder_product lu pinv
        qr schur slogdet svd tridiagonal
    """,
    "rows of integers": "lu_pivots_to_permutation",
    "has no operands": "axis_index create_token iota platform_index",
    "a square of a matrix: its derivative consists of products": "symmetric_product",
    "tokens are no numbers": "after_all",
    "random keys and bits are no vector space": """
        random_bits random_clone random_fold_in random_seed random_split random_unwrap random_wrap
        philox2x32 philox4x32 rng_bit_generator rng_uniform threefry2x32 threefry4x32
    """,
}
# As in JAX. What is differentiated takes floats, and its derivative is a product of those.
OF_FEW_BITS = dict.fromkeys(
    ("scaled_dot", "scaled_matmul"),
    "numbers of a few bits: `nn.scaled_dot_general` rounds floats to such, and has a derivative",
)
# It has no key, so whoever maps or differentiates it would not know what is drawn again.
WITHOUT_KEY = {"rng_uniform": "a generator without a key: random.uniform can be mapped"}
FOR_LOWERING = {"ordered_call": "made when a program is lowered, behind all transforms"}
# On refs: a program has none any more when something transforms or lowers it.
ON_REFS = dict.fromkeys(
    ("addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "swap"),
    "discharged: the program has values in place of refs",
)
NO_TRANSPOSE = {name: why for why, names in NOT_LINEAR.items() for name in names.split()}
NO_TRANSPOSE |= FOR_LOWERING | OF_FEW_BITS
NO_OPERANDS = "has no operands, so none is batched or has a tangent"
NO_BATCH = {
    **dict.fromkeys(("create_token", "iota", "platform_index"), NO_OPERANDS),
    **WITHOUT_KEY,
    **FOR_LOWERING,
}
NO_JVP = {
    **OF_FEW_BITS,
    **WITHOUT_KEY,
    **FOR_LOWERING,
    "platform_index": NO_OPERANDS,
    **dict.fromkeys(
        ("geqrf", "hessenberg", "tridiagonal"),
        "reflectors, whose signs jump: what they are good for, qr, can be differentiated",
    ),
    "schur": "its vectors are free to turn in a block of two rows, and where eigenvalues are equal",
}
UNTRACED = {"custom_call": "a Python function: it is called, or becomes the program of an equation"}
AUTHORS = {"custom_partitioning": "its author writes the rules, around it, as in JAX"}
GAPS = {
    "transpose": NO_TRANSPOSE | UNTRACED | AUTHORS | ON_REFS,
    "batch": NO_BATCH | UNTRACED | AUTHORS | ON_REFS,
    "type": UNTRACED,
    "lower": UNTRACED | ON_REFS,
    "jvp": NO_JVP | AUTHORS | ON_REFS,
}

# What moves elements as they are has a meaning for typed keys too.
ON_KEYS = [
    *("broadcast_in_dim", "concatenate", "copy", "gather", "optimization_barrier", "reshape"),
    *("rev", "scatter", "slice", "split", "squeeze", "stack", "tile", "transpose", "unstack"),
]


@pytest.mark.parametrize("rule", GAPS)
def test_rules_are_defined(rule: str) -> None:
    missing = [p.name for p in PRIMITIVES if not defines(p, rule) and p.name not in GAPS[rule]]
    assert not missing, f"without {rule} rule, and no reason why: {missing}"


def test_linear_rows_are_found() -> None:
    rows = [p for p in PRIMITIVES if isinstance(p, Elementwise) and p.transposed is not None]
    assert rows and all(map(is_homogeneous, rows))


@pytest.mark.parametrize("rule", GAPS)
def test_no_excuse_is_out_of_date(rule: str) -> None:
    needless = [name for name in GAPS[rule] if defines(BY_NAME[name], rule)]
    assert not needless, f"these do have a {rule} rule: {needless}"


@pytest.mark.parametrize("rule", ["split", "dce"])
def test_programs_in_params_can_be_split_and_trimmed(rule: str) -> None:
    missing = [p.name for p in PRIMITIVES if p.higher_order and not defines(p, rule)]
    assert not missing, f"without {rule} rule: {missing}"


def test_what_moves_elements_moves_keys() -> None:
    missing = [name for name in ON_KEYS if not defines(BY_NAME[name], "physical")]
    missing = [name for name in missing if not BY_NAME[name].lowers_keys]
    assert not missing, f"not defined on typed keys: {missing}"


def test_names_are_unique() -> None:
    twice = [name for name, n in Counter(p.name for p in PRIMITIVES).items() if n > 1]
    assert not twice


def test_a_missing_rule_names_itself_and_the_remedy() -> None:
    with pytest.raises(NotImplementedError, match="`sort` has no transpose rule; define"):
        BY_NAME["sort"].transpose(None)
