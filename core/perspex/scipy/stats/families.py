"""Families of distributions: functions made of formulas for the standard distribution.

The module of a distribution declares a family and defines its functions one by one:

    _expon = Continuous("expon", "the exponential distribution", ...)
    logpdf = _expon.define("logpdf", -0.5, lambda y: -y)
    pdf = _expon.define("pdf", 0.607)

The numbers are the values in the examples of the docstrings, which tests run.
"""

from __future__ import annotations

import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.arrays import as_dtype
from perspex.arguments.types import Array
from perspex.jitted.fused import fused
from perspex.numpy.promotion import promote_all, strengthened, strong
from perspex.tracing.trace import typeof

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)

_LINES = {
    "logpdf": "Logarithm of the density of {title} at `x`.",
    "pdf": "Density of {title} at `x`.",
    "logpmf": "Logarithm of the probability of `k` under {title}.",
    "pmf": "Probability of `k` under {title}.",
    "cdf": "Probability of values up to `{first}` under {title}.",
    "logcdf": "Logarithm of the probability of values up to `x` under {title}.",
    "sf": "Probability of values above `x` under {title}.",
    "logsf": "Logarithm of the probability of values above `x` under {title}.",
    "ppf": "Quantiles of {title}: the inverse of `cdf`.",
    "isf": "Upper quantiles of {title}: the inverse of `sf`.",
}
_FIRST_WORDS = {"x": "real numbers.", "k": "whole numbers.", "q": "probabilities, from 0 to 1."}
_DOCSTRING = """{line}

    {about}

    Args:
      {words}

    Returns:
      An array of the shape to which the arguments broadcast, of floating dtype.

    Raises:
      TypeError: for arguments that are not arrays or numbers, and for shapes that do not broadcast
        (ValueError if their ranks differ).
      TypeError or ValueError: for complex arguments, as in JAX.

    >>> from perspex.scipy import stats
    >>> round(float(stats.{call}), 3)
    {shows}
    """

# How to derive functions from others; the first source that is defined counts.
_DERIVED: dict[str, dict[str, Callable[[Any], Any]]] = {
    "pdf": {"logpdf": pnp.exp},
    "pmf": {"logpmf": pnp.exp},
    "cdf": {"logcdf": pnp.exp, "logsf": lambda v: -pnp.expm1(v)},
    "sf": {"logsf": pnp.exp, "logcdf": lambda v: -pnp.expm1(v)},
    "logcdf": {"cdf": pnp.log},
    "logsf": {"sf": pnp.log},
}

# What JAX's formulas make of weakly typed arguments: one rule for a first argument with axes, then
# one for a scalar. A letter stands for each parameter, the last one for all that follow: `s` is
# strengthened, so that its cotangent is strong; `c` is converted, so that it is weak; `-` stays.
# Results are weak after `*`, else as the formula leaves them.
_WEAK = {
    "bernoulli": {"logpmf pmf": "s- -", "cdf": "c -"},
    "beta": {"cdf logcdf logsf sf": "s -", "logpdf pdf": "cs -"},
    "cauchy": {"cdf logcdf logpdf logsf pdf sf": "s -", "isf ppf": "cs c-*"},
    "chi2": {"cdf logcdf logsf sf": "sc c*", "logpdf pdf": "s -"},
    "expon": {"cdf logsf sf": "c* c*"},
    "gamma": {"cdf logcdf": "sc c*", "logpdf pdf": "cs -", "logsf sf": "c* c*"},
    "geom": {"logpmf pmf": "sc -"},
    "gumbel_r": {"sf": "s -"},
    "laplace": {"cdf logpdf pdf": "s -"},
    "logistic": {"isf logpdf pdf ppf": "s -"},
    "nbinom": {"logpmf pmf": "ccs -"},
    "norm": {"logpdf pdf": "s -"},
    "pareto": {"logpdf pdf": "s -", "cdf": "sc sc*", "logcdf": "sc* sc*", "logsf sf": "c c*",
               "ppf": "s s-*"},
    "poisson": {"cdf": "cc -"},
    "t": {"logpdf pdf": "s -"},
    "truncnorm": {"cdf logcdf logsf sf": "c c", "logpdf pdf": "sc sc"},
}  # fmt: skip
# JAX refuses complex arguments of these with a `ValueError`, of others with a `TypeError`.
_REFUSED = {"beta.cdf", "beta.logcdf", "beta.logsf", "beta.sf", "uniform.cdf"}
_AS = {"s": strengthened, "c": strong, "-": lambda x: x}


def at(condition: Any, x: Any, elsewhere: float) -> Array:
    """`x` where a condition holds, elsewhere a number.

    For a formula outside its domain the number is one where it and its derivatives are finite.
    """
    return pnp.where(condition, x, elsewhere)


def floats(name: str, *operands: Any) -> list[Array]:
    """Arguments at one floating dtype, and one shape unless they are scalars."""
    args = promote_all(name, *operands, to=dtypes.to_inexact_dtype)
    if typeof(args[0]).dtype.kind == "c":
        refused = ValueError if name in _REFUSED else TypeError
        raise refused(f"{name} does not support complex arguments; take real ones")
    return args


class Family:
    """A distribution of numbers, whose functions have the same parameters.

    Args:
      name: its module, such as "norm".
      title: what sentences call it, such as "the normal distribution".
      about: the density as a formula and where it holds, for docstrings.
      words: what the parameters after the first one are. Those called `loc` and `scale` are 0 and 1
        by default, and formulas do not see them. The first one may be described too.
      example: the arguments in examples. In those of quantiles the first one is 0.25.
      support: where the density is not zero, given `y` and the shape parameters.
      safe: a point of the support, which formulas for the density see in place of those outside.
      invalid: given the shape parameters, where all values but quantiles are NaN.
      invalid_mass: the same for all but densities, if it differs.
      invalid_scale: given the scale, where densities are NaN.
      invalid_scale_mass: the same for all but densities and quantiles.
      bounded: whether quantiles are NaN for numbers that are not between 0 and 1.
      probability: the name of the first parameter of quantiles.
    """

    first: str  # the name of the first parameter

    def __init__(
        self,
        name: str,
        title: str,
        about: str,
        words: Mapping[str, str],
        *,
        example: str,
        support: Callable[..., Any] | None = None,
        safe: float = 0.5,
        invalid: Callable[..., Any] | None = None,
        invalid_mass: Callable[..., Any] | None = None,
        invalid_scale: Callable[[Any], Any] | None = None,
        invalid_scale_mass: Callable[[Any], Any] | None = None,
        bounded: bool = False,
        probability: str = "q",
    ) -> None:
        self.name, self.title, self.example = name, title, example
        self.about = textwrap.fill(about, 96, subsequent_indent="    ")
        self.words = _FIRST_WORDS | dict(words)
        self.probability = probability
        self.parameters = [word for word in words if word != self.first]
        self.support, self.safe, self.bounded = support, safe, bounded
        self.invalid, self.invalid_mass = invalid, invalid_mass or invalid
        self.invalid_scale, self.invalid_scale_mass = invalid_scale, invalid_scale_mass
        self.rules: dict[str, Callable[..., Any]] = {}

    def define(
        self,
        name: str,
        shows: float,
        formula: Callable[..., Any] | None = None,
        *,
        loc: bool = True,
        widest: bool = False,
        alone: bool = False,
    ) -> Callable[..., Array]:
        """A function of the distribution.

        Args:
          name: which one, such as "logpdf".
          shows: its value in the example, rounded to three digits.
          formula: the function of `y` or `q` and the shape parameters; if not given, the function
            is derived from one defined before.
          loc: whether it has the parameter `loc`.
          widest: whether results have the widest floating dtype that is enabled.
          alone: whether the dtype of the first argument decides what is computed in.
        """
        quantile = name in ("ppf", "isf")
        if formula is None:
            source = next(source for source in _DERIVED[name] if source in self.rules)
            outer = _DERIVED[name][source]
            rule = functools.partial(self._derived, name, outer, self.rules[source])
        elif quantile:
            rule = functools.partial(self._quantile, formula)
        else:
            log_density = name in ("logpdf", "logpmf")
            rule = functools.partial(
                self._log_density if log_density else self._mass, name, formula
            )
        self.rules[name] = rule
        names = [self.probability if quantile else self.first, *self.parameters]
        if not loc:
            names.remove("loc")
        full_name = f"{self.name}.{name}"
        rules = [r for n, r in _WEAK.get(self.name, {}).items() if name in n.split()]
        with_axes, scalar = rules[0].split() if rules else ("-", "-")
        signature = inspect.Signature([_parameter(n) for n in names], return_annotation="Array")

        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{full_name}: {error}") from None
            given.apply_defaults()
            together = given.args[:1] if alone else given.args
            operands = [*floats(full_name, *together), *given.args[len(together) :]]
            as_weak = "-"
            if typeof(operands[0]).weak_type:
                as_weak = with_axes if np.shape(operands[0]) else scalar
                letters = as_weak.removesuffix("*")
                letters = letters.ljust(len(names), letters[-1])
                operands = [_AS[k](x) for k, x in zip(letters, operands, strict=False)]
            values = dict(zip(names, operands, strict=True))
            moves = values.pop("loc", None), values.pop("scale", None)
            value = rule(moves, *values.values())
            if as_weak.endswith("*"):
                value = as_dtype(value, value.dtype, weak=True)
            return pnp.asarray(value, float) if widest else value

        function.__name__ = function.__qualname__ = name
        function.__module__ = f"{__package__}.{self.name}"
        function.__signature__ = signature  # type: ignore[attr-defined]
        words = self.words | ({names[0]: self.words["q"]} if quantile else {})
        rest = self.example.partition(",")
        example = "".join(["0.25", *rest[1:]]) if quantile else self.example
        function.__doc__ = _DOCSTRING.format(
            line=_LINES[name].format(title=self.title, first=names[0]),
            about=self.about,
            words="\n      ".join([f"{n}: {words[n]}" for n in names]),
            call=f"{full_name}({example})",
            shows=shows,
        )
        return fused(function)

    def _log_density(
        self, name: str, formula: Callable[..., Any], moves: Any, x: Any, *shapes: Any
    ) -> Any:
        y = _standard(x, *moves)
        inside = None if self.support is None else self.support(y, *shapes)
        value = formula(y if inside is None else at(inside, y, self.safe), *shapes)
        if moves[1] is not None:
            value = value - pnp.log(moves[1])
        value = value if inside is None else at(inside, value, -math.inf)
        return self._checked(name, value, moves, shapes)

    def _mass(
        self, name: str, formula: Callable[..., Any], moves: Any, x: Any, *shapes: Any
    ) -> Any:
        return self._checked(name, formula(_standard(x, *moves), *shapes), moves, shapes)

    def _quantile(self, formula: Callable[..., Any], moves: Any, q: Any, *shapes: Any) -> Any:
        loc, scale = moves
        possible = (q >= 0) & (q <= 1) if self.bounded else None
        value = formula(q if possible is None else at(possible, q, 0.5), *shapes)
        value = value if scale is None else value * scale
        value = value if loc is None else value + loc
        return value if possible is None else at(possible, value, math.nan)

    def _derived(
        self,
        name: str,
        outer: Callable[..., Any],
        rule: Callable[..., Any],
        moves: Any,
        x: Any,
        *shapes: Any,
    ) -> Any:
        # Once more, as XLA on CPUs loses a NaN that a scalar condition selects before an `exp`:
        # https://github.com/jax-ml/jax/issues/29537.
        return self._checked(name, outer(rule(moves, x, *shapes)), moves, shapes)

    def _checked(self, name: str, value: Any, moves: Any, shapes: tuple[Any, ...]) -> Any:
        density = name.endswith(("pdf", "pmf"))
        invalid = self.invalid if density else self.invalid_mass
        if invalid is not None:
            value = at(~invalid(*shapes), value, math.nan)
        invalid = self.invalid_scale if density else self.invalid_scale_mass
        return value if invalid is None else at(~invalid(moves[1]), value, math.nan)


class Continuous(Family):
    """A family with a density; formulas get `y = (x - loc) / scale`, and no `log(scale)`."""

    first = "x"


class Discrete(Family):
    """A family of probabilities of whole numbers; formulas get `k - loc`."""

    first = "k"


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    x = x if loc is None else x - loc
    return x if scale is None else x / scale


def _parameter(name: str) -> inspect.Parameter:
    default = {"loc": 0, "scale": 1}.get(name, inspect.Parameter.empty)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation="ArrayLike")
