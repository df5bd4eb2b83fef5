"""Sizes of axes as expressions of unknown positive integers, `2*a + floordiv(b, 3)`.

An expression is a polynomial with integer coefficients whose factors are variables and the
operations `floordiv`, `mod`, `max` and `min` of expressions. Polynomials have one form each, so two
are equal if their forms are. What cannot be answered from the form is answered from bounds
(`export.bounds`) where these suffice; else the question raises `InconclusiveDimensionOperation`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from perspex.base.dimensions import Symbolic
from perspex.errors import InconclusiveDimensionOperation
from perspex.export.values import dim_as_value

# A factor is the name of a variable, or an operation with its operands; a product of factors has
# them in order, each as often as it occurs.
Factor = Any
Product = tuple[Factor, ...]
Size = Any
_LARGEST = 2**31 - 1
OPERATIONS = ("floordiv", "mod", "max", "min")


def _factor_key(factor: Factor) -> Any:
    if isinstance(factor, str):
        return (0, factor)
    return (1, factor[0], *[str(x) for x in factor[1:]])


def _product_key(product: Product) -> Any:
    return (len(product), [_factor_key(factor) for factor in product])


class Dimension(Symbolic):
    """A size that is no known integer. Arithmetic with integers and others of its scope works.

    Equality is that of form. Comparisons by order raise `InconclusiveDimensionOperation` where the
    answer depends on the values of the variables.
    """

    __slots__ = ("_hash", "_text", "scope", "terms")

    def __init__(self, terms: dict[Product, int], scope: Any) -> None:
        order = sorted(terms, key=_product_key, reverse=True)
        self.terms = {product: terms[product] for product in order}
        self.scope = scope
        self._hash = hash(tuple(self.terms.items()))
        self._text = _text(self.terms)

    # ---- what it is -------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._text

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Dimension) and self.scope is other.scope and self.terms == other.terms
        )

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        found: set[str] = set()
        for product in self.terms:
            for factor in product:
                if isinstance(factor, str):
                    found.add(factor)
                else:
                    found.update(*[variables(x) for x in factor[1:]])
        return found

    def not_known(self, where: str) -> InconclusiveDimensionOperation:
        """The error for a use that needs the value."""
        return InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' {where}, where its value is needed"
        )

    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. Give the "
            "dimension a number in the specification of the arguments, or use an operation that "
            "takes symbolic dimensions"
        )

    __int__ = __index__

    def __bool__(self) -> bool:
        return bool(self != 0 and (self.bounds[0] > 0 or self.bounds[1] < 0 or self.ask("!=", 0)))

    def ask(self, relation: str, other: Size) -> bool:
        """Raise: the relation holds for some values of the variables and not for others."""
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{self}' {relation} '{other}' is inconclusive: it "
            "depends on the values of the variables. Add a constraint that decides it, for "
            f"example export.symbolic_shape(..., constraints=['{self} >= {other}'])"
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """A lower and an upper bound, infinite where none is known."""
        found: tuple[float, float] = self.scope.bounds(self)
        return found

    # ---- arithmetic -------------------------------------------------------------------------

    def _same_scope(self, other: Dimension) -> None:
        if other.scope is not self.scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes: '{self}' and '{other}' were made by different "
                "calls of `symbolic_shape`. Make both in one call, or pass the same `scope`"
            )

    def _terms_of(self, other: Any) -> dict[Product, int] | None:
        """The terms of an operand; `None` if it is neither an integer nor a dimension."""
        if isinstance(other, Dimension):
            self._same_scope(other)
            return other.terms
        if hasattr(other, "aval") or not hasattr(other, "__index__"):
            return None
        value = operator.index(other)
        return {(): value} if value else {}

    def _as_array(self, op: Callable[[Any, Any], Any], other: Any, swapped: bool) -> Any:
        value = self.__jax_array__()
        if isinstance(other, Dimension):
            other = other.__jax_array__()
        return op(other, value) if swapped else op(value, other)

    def __jax_array__(self) -> Any:
        return dim_as_value(dim=self)

    def __add__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return self._as_array(operator.add, other, False)
        return make(_sum(self.terms, terms, 1), self.scope)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return self._as_array(operator.sub, other, False)
        return make(_sum(self.terms, terms, -1), self.scope)

    def __rsub__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return self._as_array(operator.sub, other, True)
        return make(_sum(terms, self.terms, -1), self.scope)

    def __mul__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        if terms is None:
            return self._as_array(operator.mul, other, False)
        found: dict[Product, int] = {}
        for one, k in self.terms.items():
            for two, j in terms.items():
                product = tuple(sorted((*one, *two), key=_factor_key))
                found[product] = found.get(product, 0) + k * j
        return make(found, self.scope)

    def __rmul__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return self._as_array(operator.mul, other, True) if terms is None else self * other

    def __pow__(self, power: Any) -> Any:
        if self._terms_of(power) is None:
            return self._as_array(operator.pow, power, False)
        if isinstance(power, Dimension) or power < 0:
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension '{self}' raised to the power '{power}': the power must be an "
                "integer that is not negative"
            )
        found: Any = 1
        for _ in range(operator.index(power)):
            found = self * found
        return found

    def __truediv__(self, other: Any) -> Any:
        return self._as_array(operator.truediv, other, False)

    def __rtruediv__(self, other: Any) -> Any:
        return self._as_array(operator.truediv, other, True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __floordiv__(self, other: Any) -> Any:
        if self._terms_of(other) is None:
            return self._as_array(operator.floordiv, other, False)
        return divide(self, other, self.scope)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        if self._terms_of(other) is None:
            return self._as_array(operator.floordiv, other, True)
        return divide(other, self, self.scope)[0]

    def __mod__(self, other: Any) -> Any:
        if self._terms_of(other) is None:
            return self._as_array(operator.mod, other, False)
        return divide(self, other, self.scope)[1]

    def __rmod__(self, other: Any) -> Any:
        if self._terms_of(other) is None:
            return self._as_array(operator.mod, other, True)
        return divide(other, self, self.scope)[1]

    def extreme(self, name: str, other: Any) -> Size:
        """The greater (`max`) or the smaller (`min`) of this size and another."""
        self._terms_of(other)
        return operation(name, self, other, self.scope)

    # ---- comparisons ------------------------------------------------------------------------

    def _at_least(self, relation: str, other: Any, one: Size, two: Size) -> bool:
        """Whether `one >= two`; they are this one and `other`, in some order."""
        difference = one - two
        if not isinstance(difference, Dimension):
            return bool(difference >= 0)
        low, high = difference.bounds
        if low >= 0:
            return True
        if high < 0:
            return False
        # Sizes are int32 while a program runs.
        limit = one if two is self else two
        if not isinstance(limit, Dimension) and abs(limit) >= _LARGEST:
            return bool((limit > 0) == (limit is one))
        return self.ask(relation, other)

    def __ge__(self, other: Any) -> bool:
        return self._at_least(">=", other, self, other)

    def __le__(self, other: Any) -> bool:
        return self._at_least("<=", other, other, self)

    def __gt__(self, other: Any) -> bool:
        return not self._at_least(">", other, other, self)

    def __lt__(self, other: Any) -> bool:
        return not self._at_least("<", other, self, other)

    # ---- values -----------------------------------------------------------------------------

    def evaluate(self, values: Mapping[str, Any], apply: Mapping[str, Callable[..., Any]]) -> Any:
        """The value for these values of the variables: numbers, other sizes, or anything.

        `apply` has the functions `add`, `mul`, and those of the operations.
        """

        def operand(x: Any) -> Any:
            return x.evaluate(values, apply) if isinstance(x, Dimension) else x

        total: Any = None
        for product, k in self.terms.items():
            found: Any = k if k != 1 or not product else None
            for factor in product:
                if isinstance(factor, str):
                    value = values[factor]
                else:
                    value = apply[factor[0]](operand(factor[1]), operand(factor[2]))
                found = value if found is None else apply["mul"](found, value)
            total = found if total is None else apply["add"](total, found)
        return total


def _sum(one: Mapping[Product, int], two: Mapping[Product, int], sign: int) -> dict[Product, int]:
    found = dict(one)
    for product, k in two.items():
        found[product] = found.get(product, 0) + sign * k
    return found


def _text(terms: Mapping[Product, int]) -> str:
    texts = []
    for product, k in terms.items():
        powers: dict[Factor, int] = {}
        for factor in product:
            powers[factor] = powers.get(factor, 0) + 1
        parts = [
            (f if isinstance(f, str) else f"{f[0]}({f[1]}, {f[2]})") + (f"^{n}" if n > 1 else "")
            for f, n in powers.items()
        ]
        if abs(k) != 1 or not parts:
            parts.insert(0, str(abs(k)))
        sign = " - " if k < 0 else " + "
        texts.append(sign + "*".join(parts))
    text = "".join(texts)
    return text[3:] if text.startswith(" + ") else text[1:]


def make(terms: Mapping[Product, int], scope: Any) -> Size:
    """The size with these terms: an integer if it has no variable."""
    found: dict[Product, int] = {}
    rules = scope.rules
    for product, k in terms.items():
        rule = rules.get(product)
        if rule is not None and k % rule[1] == 0:
            part = rule[0] * (k // rule[1])
            more = part.terms if isinstance(part, Dimension) else {(): part}
        else:
            more = {product: k}
        for key, value in more.items():
            found[key] = found.get(key, 0) + value
    found = {product: k for product, k in found.items() if k}
    if not found:
        return 0
    return found[()] if list(found) == [()] else Dimension(found, scope)


def variables(x: Size) -> set[str]:
    """The names of the variables in a size: none in an integer."""
    return x.variables() if isinstance(x, Dimension) else set()


def all_variables(shapes: Iterable[Iterable[Size]]) -> list[str]:
    """The names of the variables in some shapes, in order."""
    return sorted(set().union(*[variables(n) for shape in shapes for n in shape]))


def variable(name: str, scope: Any) -> Size:
    """The size that is called `name`."""
    return make({(name,): 1}, scope)


def operation(name: str, one: Size, two: Size, scope: Any) -> Size:
    """`floordiv`, `mod`, `max` or `min` of two sizes, in the simplest form that is known."""
    if name in ("floordiv", "mod"):
        return divide(one, two, scope)[name == "mod"]
    difference = one - two
    low, high = bounds_of(difference)
    if low >= 0:
        return one if name == "max" else two
    if high <= 0:
        return two if name == "max" else one
    return make({((name, one, two),): 1}, scope)


def bounds_of(x: Size) -> tuple[float, float]:
    """A lower and an upper bound of a size."""
    return x.bounds if isinstance(x, Dimension) else (x, x)


def divide(one: Size, two: Size, scope: Any) -> tuple[Size, Size]:
    """The quotient, rounded down, and the remainder. What divides exactly is divided."""
    if not isinstance(one, Dimension) and not isinstance(two, Dimension):
        return divmod(one, two)
    if two == 0:
        raise ZeroDivisionError(f"Symbolic dimension '{one}' divided by zero")
    exact, rest = _divide_terms(one, two, scope)
    if not isinstance(rest, Dimension) and not isinstance(two, Dimension):
        quotient, rest = divmod(rest, two)
        return exact + quotient, rest
    # 0 <= rest < two decides too.
    low, high = bounds_of(rest)
    if low >= 0 and (high < bounds_of(two)[0] or bounds_of(rest - two)[1] < 0):
        return exact, rest
    if high < 0 and bounds_of(two)[0] > 0 and bounds_of(rest + two)[0] >= 0:
        return exact - 1, rest + two
    quotient = make({(("floordiv", rest, two),): 1}, scope)
    return exact + quotient, make({(("mod", rest, two),): 1}, scope)


def _divide_terms(one: Size, two: Size, scope: Any) -> tuple[Size, Size]:
    """`q` and `r` with `one == q*two + r`, as polynomials: of `r` no term is divisible."""
    exact: Size = 0
    rest = one
    first, k = next(iter(two.terms.items())) if isinstance(two, Dimension) else ((), two)
    if not isinstance(two, Dimension):
        terms = one.terms
        exact = make({p: n // k for p, n in terms.items() if n % k == 0}, scope)
        return exact, make({p: n for p, n in terms.items() if n % k}, scope)
    for _ in range(64):
        if not isinstance(rest, Dimension):
            break
        for product, n in rest.terms.items():
            left = _without(product, first)
            if left is not None and n % k == 0:
                part = make({left: n // k}, scope)
                break
        else:
            break
        exact, rest = exact + part, rest - part * two
    return exact, rest


def _without(product: Product, divisor: Product) -> Product | None:
    """The product without the factors of another; `None` if it does not have them all."""
    left = list(product)
    for factor in divisor:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)
