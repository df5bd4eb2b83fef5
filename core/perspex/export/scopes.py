"""Scopes of symbolic dimensions: which variables belong together, and what is known of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from perspex.export.bounds import bounds
from perspex.export.expressions import Dimension, Size, make
from perspex.export.parsing import parse


class Constraint(NamedTuple):
    """`difference >= 0`, or `difference == 0` if it is an equality; `text` as the user wrote it."""

    text: str
    is_equality: bool
    difference: Size


class SymbolicScope:
    """The scope of symbolic dimensions: those of one scope can be compared and combined.

    Args:
      constraints_str: what is known of the dimensions: strings `"e1 >= e2"`, `"e1 <= e2"` or
        `"e1 == e2"`.

    Returns:
      A scope for `symbolic_shape`.

    Raises:
      ValueError: for a constraint that is no such string, or that no values satisfy.

    >>> from perspex import export
    >>> scope = export.SymbolicScope(["a >= 8"])
    >>> (a,) = export.symbolic_shape("a", scope=scope)
    >>> a >= 4
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError(
                "The symbolic constraints should be a sequence of strings. "
                f"Got {constraints_str!r}; put it into a list"
            )
        self.constraints: list[Constraint] = []
        # What a product of factors, times an integer, is equal to.
        self.rules: dict[Any, tuple[Size, int]] = {}
        self._known: dict[Dimension, tuple[float, float]] = {}
        for text in constraints_str:
            self._add(text)

    def __repr__(self) -> str:
        texts = [constraint.text for constraint in self.constraints]
        return f"SymbolicScope({texts})"

    def bounds(self, x: Dimension) -> tuple[float, float]:
        """A lower and an upper bound of a dimension, infinite where none is known.

        Args:
          x: a dimension of this scope.

        Returns:
          Two numbers.

        Raises:
          Nothing.

        >>> from perspex import export
        >>> (a,) = export.symbolic_shape("a")
        >>> a.scope.bounds(a + 1)
        (2, inf)
        """
        found = self._known.get(x)
        if found is None:
            found = self._known[x] = bounds(
                x, [(c.difference, c.is_equality) for c in self.constraints]
            )
        return found

    def _add(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        parts = re.split(r"(==|>=|<=)", text)
        if len(parts) != 3:
            raise ValueError(
                f"Constraint parsing error: {text!r} must contain one of '==' or '>=' or '<='"
            )
        one, two = [self._parsed(part) for part in parts[::2]]
        relation = parts[1]
        difference = two - one if relation == "<=" else one - two
        is_equality = relation == "=="
        if not isinstance(difference, Dimension):
            if difference < 0 or (is_equality and difference != 0):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        if is_equality:
            self._add_rule(text, one, two)
        self.constraints.append(Constraint(text, is_equality, difference))
        self._known.clear()

    def _parsed(self, text: str) -> Size:
        (size,) = parse(text.strip(), self, None)
        return size

    def _add_rule(self, text: str, one: Size, two: Size) -> None:
        if not isinstance(one, Dimension) or len(one.terms) != 1:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form "
                "`term * coefficient`."
            )
        ((product, k),) = one.terms.items()
        if product in self.rules:
            raise NotImplementedError(
                f"Found multiple equality constraints with the same left-hand-side: {text}"
            )
        self.rules[product] = (two, k)
        is_mod = len(product) == 1 and not isinstance(product[0], str) and product[0][0] == "mod"
        if is_mod and k == 1 and two == 0 and not isinstance(product[0][2], Dimension):
            # What is divided without a remainder is the quotient times the divisor.
            _, dividend, divisor = product[0]
            quotient = make({(("floordiv", dividend, divisor),): divisor}, self)
            if isinstance(quotient, Dimension):
                self._add_rule(text, quotient, dividend)
                found = Constraint(f"{quotient} == {dividend}", True, quotient - dividend)
                if isinstance(found.difference, Dimension):
                    self.constraints.append(found)
