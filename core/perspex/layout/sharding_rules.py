"""Which axes of operands and results belong together: rules for Shardy, the partitioner.

A *factor* is a name for an axis. `"i j, j k -> i k"` is the rule of a product of matrices: the
first axes of the first operand and of the result are cut in the same way, and so on. An axis
`(a b)` consists of two factors, and `...` stands for any number of leading axes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

BATCHING = "…"

_TOKEN = re.compile(r"\.\.\.\d*|[^\W\d]\w*|\S")


def _check_name(factor: str) -> None:
    if not factor[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{factor[:1]}'")
    for char in factor[1:]:
        if not (char == "_" or char.isdigit() or char.isalpha()):
            raise ValueError(f"Unknown character '{char}'")


def _is_batching(factor: object) -> bool:
    return isinstance(factor, str) and bool(re.fullmatch(rf"{BATCHING}\d*", factor))


class CompoundFactor(tuple[str, ...]):
    """The factors of one axis, at least two: the size of the axis is the product of theirs.

    >>> CompoundFactor("b", "c")
    ('b', 'c')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(
                    f"Each element of CompoundFactor must be a str, but got {type(factor)}"
                )
            if _is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[str | CompoundFactor, ...]):
    """The factors of an array, one entry for each axis; the first may be `BATCHING`.

    >>> ArrayMapping(BATCHING, CompoundFactor("b", "c"), "d")
    ('…', ('b', 'c'), 'd')
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for i, factor in enumerate(dim_mappings):
            if not isinstance(factor, str | CompoundFactor):
                raise ValueError(
                    "Each element of ArrayMapping must be a str or CompoundFactor, but got "
                    f"{type(factor)}"
                )
            if _is_batching(factor):
                if i:
                    raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            elif isinstance(factor, str):
                _check_name(factor)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """Which axes of operands and results belong together.

    Args:
      operand_mappings, result_mappings: an `ArrayMapping` for each.
      reduction_factors: factors over which the operation sums.
      need_replication_factors: factors that must not be cut.
      permutation_factors: factors that may be cut if the parts are then exchanged.
      factor_sizes: the sizes of factors that are nowhere a whole axis.

    Raises:
      ValueError: for factors that are used nowhere or in two ways, and sizes that are missing or
        not needed.

    >>> print(SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),)))
    SdyShardingRule((('i',),), (('i',),), {})
    """

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        axes = [axis for mapping in (*operand_mappings, *result_mappings) for axis in mapping]
        whole = {axis for axis in axes if isinstance(axis, str)}
        parts = {factor for axis in axes if not isinstance(axis, str) for factor in axis}
        for factor in factor_sizes:
            if factor not in whole | parts:
                raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")
            if factor in whole:
                raise ValueError(
                    f"Factor {factor} represents a whole dimension; do not specify its size"
                )
        for factor in sorted(parts - whole):
            if factor not in factor_sizes:
                raise ValueError(
                    f"Factor {factor} is only used in compound factors; must specify its size"
                )
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.factor_sizes = factor_sizes
        self.special = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        seen: set[str] = set()
        for kind, factors in self.special.items():
            if not isinstance(factors, tuple):
                raise ValueError(f"{kind} must be a tuple of factors")
            if len(factors) != len(set(factors)):
                raise ValueError(f"{kind} contains duplicated factors")
            for factor in factors:
                if factor not in whole | parts:
                    raise ValueError(f"Factor {factor} in {kind} is not used in the rule")
                if factor in seen:
                    raise ValueError(
                        f"Factor {factor} can only be in one of the reduction, need replication, "
                        "or permutation factor sets."
                    )
                seen.add(factor)

    def __repr__(self) -> str:
        special = "".join([f" {kind}={names}" for kind, names in self.special.items() if names])
        return (
            f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, "
            f"{self.factor_sizes}{special})"
        )


def parsed(
    rule: str,
    *,
    reduction_factors: tuple[str, ...] = (),
    need_replication_factors: tuple[str, ...] = (),
    permutation_factors: tuple[str, ...] = (),
    **factor_sizes: int,
) -> SdyShardingRule:
    """The rule that a text means.

    Raises `ValueError` for a text that is no rule, and `TypeError` for something else than text.
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    if not all(isinstance(size, int) for size in factor_sizes.values()):
        raise TypeError(f"factor_sizes must be a dict of str to int, but got {factor_sizes}")
    if BATCHING in rule:
        raise ValueError(f"Unknown character '{BATCHING}'")
    if "." in rule.replace("...", ""):
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    if rule.count("->") != 1:
        raise ValueError(f"There is no -> in rule: '{rule}'")
    operands, results = [tuple(_mappings(side)) for side in rule.split("->")]
    return SdyShardingRule(
        operands,
        results,
        reduction_factors=reduction_factors,
        need_replication_factors=need_replication_factors,
        permutation_factors=permutation_factors,
        **factor_sizes,
    )


def _mappings(side: str) -> Iterator[ArrayMapping]:
    """The arrays on one side of the arrow; none written is one without axes."""
    axes: list[str | CompoundFactor] = []
    group: list[str] | None = None
    for token in _TOKEN.findall(side):
        if token.startswith("..."):
            if axes or group is not None:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            axes.append(f"{BATCHING}{int(token[3:] or 0)}")
        elif token == "(":
            if group is not None:
                raise ValueError(
                    "Compound factors should be one level, nested brackets are not allowed"
                )
            group = []
        elif token == ")":
            if group is None:
                raise ValueError("Brackets are not balanced")
            if len(group) < 2:
                raise ValueError("Brackets should contain at least two factors")
            axes.append(CompoundFactor(*group))
            group = None
        elif token == ",":
            yield ArrayMapping(*axes)
            axes = []
        elif token[0].isdigit():
            raise ValueError(f"Factor names have to start with a letter, but got '{token[0]}'")
        elif not (token[0].isalpha() or token[0] == "_"):
            raise ValueError(f"Unknown character '{token[0]}'")
        elif group is None:
            axes.append(token)
        else:
            group.append(token)
    if group is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{side.strip()}'")
    yield ArrayMapping(*axes)


# ---- In programs --------------------------------------------------------------------------------

Shape = Sequence[int]


def in_program(rule: SdyShardingRule, operands: Sequence[Shape], results: Sequence[Shape]) -> str:
    """The rule for arrays of these shapes in Shardy's notation.

    Raises `ValueError` if the shapes do not fit the rule.
    """
    arrays: list[list[tuple[str, ...]]] = []
    sizes: dict[str, int | None] = {}
    leading: dict[str, int] = {}
    for what, mappings, shapes in (
        ("operand", rule.operand_mappings, operands),
        ("result", rule.result_mappings, results),
    ):
        if len(mappings) != len(shapes):
            raise ValueError(
                f"Sharding rule has {len(mappings)} {what}s, but the operation has {len(shapes)} "
                f"{what}s"
            )
        for i, (mapping, shape) in enumerate(zip(mappings, shapes, strict=True)):
            axes = _axes(mapping, len(shape), f"{i}th {what}", leading)
            arrays.append(axes)
            for factors, size in zip(axes, shape, strict=True):
                _note(factors, size, sizes, rule)
    shapes = [*operands, *results]
    for i, (axes, shape) in enumerate(zip(arrays, shapes, strict=True)):
        _check_products(axes, shape, sizes, i, len(operands))
    names = {factor: _letter(n) for n, factor in enumerate(sizes)}

    def written(axes: list[tuple[str, ...]]) -> str:
        return "[" + ", ".join(["".join([names[f] for f in factors]) for factors in axes]) + "]"

    parted = arrays[: len(operands)], arrays[len(operands) :]
    sides = [", ".join(map(written, side)) for side in parted]
    listed = ", ".join([f"{names[factor]}={size}" for factor, size in sizes.items()])
    special = "".join(
        [
            f" {kind.removesuffix('_factors')}={{{', '.join([names[f] for f in factors])}}}"
            for kind, factors in rule.special.items()
            if factors
        ]
    )
    return f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{listed}}}{special}, custom>"


def _axes(
    mapping: ArrayMapping, ndim: int, what: str, leading: dict[str, int]
) -> list[tuple[str, ...]]:
    """The factors of each axis of an array; leading axes that `...` stands for have numbers."""
    axes = [(axis,) if isinstance(axis, str) else tuple(axis) for axis in mapping]
    if mapping and _is_batching(mapping[0]):
        group, axes = axes[0][0][1:] or "0", axes[1:]
        count = max(ndim - len(axes), 0)
        expected = leading.setdefault(group, count)
        if expected != count:
            raise ValueError(
                f"Ellipsis represents different number of leading dimensions {expected} and {count}"
            )
        axes = [*[(f"?{group}_{n}",) for n in range(count)], *axes]
    if len(axes) != ndim:
        raise ValueError(
            f"Sharding rule {what} has rank {len(axes)}, but the operation {what} has rank {ndim}"
        )
    return axes


def _note(
    factors: tuple[str, ...], size: int, sizes: dict[str, int | None], rule: SdyShardingRule
) -> None:
    """Note the factors of an axis with their sizes; of several sizes the smallest counts."""
    if len(factors) > 1:
        for factor in factors:
            sizes.setdefault(factor, rule.factor_sizes.get(factor))
        return
    (factor,) = factors
    known = sizes.get(factor)
    if known is not None and known != size and factor[0] == "?":
        raise ValueError(
            f"Batching dimension {factor[1:]} corresponds to two sizes: {known} and {size}"
        )
    sizes[factor] = size if known is None else min(known, size)


def _check_products(
    axes: list[tuple[str, ...]], shape: Shape, sizes: dict[str, int | None], i: int, operands: int
) -> None:
    for factors, size in zip(axes, shape, strict=True):
        product = 1
        for factor in factors:
            product *= sizes[factor] or 1
        if len(factors) > 1 and product != size:
            what = f"{i}th operand" if i < operands else f"{i - operands}th result"
            raise ValueError(
                f"{what} actual size {size} doesn't match the size {product} derived from the "
                f"compound factors {factors}"
            )


def _letter(n: int) -> str:
    """Shardy's name of a factor: `i` to `z`, then `z_1` and so on."""
    return chr(ord("i") + n) if n < 18 else f"z_{n - 17}"
