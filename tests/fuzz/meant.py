"""Differences that are as they should be, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fuzz.compare import Difference

INNER = "an inner error of jax"
# The shape of ours, and more sizes behind it.
SIZES = r"[^\[]*\[(?:'aval', '\w+', \[)?"
LONGER = rf"got {SIZES}(\d[\d, ]*)\][\s\S]*want {SIZES}\1, \d"
# The first size of ours twice.
TWICE = rf"got {SIZES}(\d+)([\d, ]*)\][\s\S]*want {SIZES}\1, \1\2\]"
NOT_FINITE = "NaN or infinity"
REDUCED = r"lax\.reduce\("
BESSEL = r"lax\.bessel_i1e\(|jax\.scipy\.special\.i1e?\("
EMPTY = rf"got {SIZES}(?:\d+, )*0\][\s\S]*want {SIZES}(?:\d+, )*1\]"


@dataclass(frozen=True)
class Meant:
    """A kind of difference that is as it should be.

    `said` is found in the text of the difference, and `written` in the program. `instead` is a text
    for what `written` finds: with it the two libraries agree, or something else differs, too.
    """

    kind: str
    said: str
    written: str
    reason: str
    instead: str = ""

    def fits(self, difference: Difference, program: str) -> bool:
        """Whether it may be that difference of that program."""
        return (
            difference.kind == self.kind
            and re.search(self.said, difference.text) is not None
            and re.search(self.written, program) is not None
        )


# Instead of `custom_vmap`: a function whose rule is never called.
PLAIN = (
    "(lambda f: type('Plain', (), {'__call__': lambda self, *a: f(*a), "
    "'def_vmap': lambda self, rule: rule})())("
)
# A derivative is asked for somewhere behind.
SLOPES = r"(?=[\s\S]*(forward|backward|linear|jac\w+|hessian|grad)\()"
SPECIAL = r"jax\.scipy\.special\."
CLOSES = r"got Unexp[^\n]*closes over a value[\s\S]*want "
MEANT = [
    Meant("jax raises", "", "", "Perspex accepts more"),
    Meant("we raise", r"has no derivative with respect to", "", "a derivative that jax leaves out"),
    Meant("error type", r"has no derivative with respect to", "", "one that jax misses later"),
    Meant("text", r"perspex\.|Tracer", "", "names of ours in texts"),
    Meant("structure", r"got python (int|float|bool)", r"custom_vmap\(", "right: a Python number"),
    Meant("structure", r"want numpy array", "", "right: an array of the library, not of NumPy"),
    Meant("we raise", r"with more axes than the array", "where=", "a mask that NumPy refuses, too"),
    Meant(
        "we raise", r"reduce\w*: axes .* are out of range", "", "jax leaves that to the compiler"
    ),
    Meant("we raise", r"gather: slice_sizes .* do not", "", "jax misses it where nothing is read"),
    Meant("we raise", r"jacfwd requires .* got bool", "", "jax refuses it where numbers are known"),
    Meant("error type", r"want CustomVJPException", "", "a private type, for values closed over"),
    Meant(
        "error type",
        CLOSES + r"(TypeError: No const|ValueError: (Lineariz|Reverse-mode))",
        "",
        INNER,
    ),
    Meant("error type", r"reduce: axes .* out of range[\s\S]*want IndexError", "", INNER),
    Meant("error type", r"jacrev requires[\s\S]*want ValueError: Linearization", "", INNER),
    Meant(
        "error type",
        r"jacfwd requires .* got key[\s\S]*want (NotImplementedError|ValueError: at vmap)",
        "",
        INNER,
    ),
    Meant(
        "error type",
        r"jacfwd requires .* got bool[\s\S]*want ValueError: (at vmap|Linearization|Reverse-mode)",
        "",
        INNER,
    ),
    Meant(
        "error type",
        r"got TypePromotionError[\s\S]*want ConcretizationTypeError",
        r"jnp\.(union|intersect|setdiff|setxor)1d\(",
        "a program with two errors; jax raises the other one",
    ),
    Meant(
        "error type",
        r"reduce_\w+: axes [\s\S]*want TypeError: logical",
        "",
        "a program with two errors; jax raises the other one",
    ),
    Meant(
        "we raise",
        r"Unknown gather mode",
        r"\.at\[(np\.array\((\[?(True|False)\]?)+, bool|(None|\.\.\.)\])",
        "a mode that jax does not look at where it gathers nothing",
    ),
    Meant(
        "error type",
        r"want NotImpl\w+: Diff\w+ rule for '(zeta|igamma_grad_a|pmax|pmin|geqrf)'",
        "",
        "a derivative that jax lacks",
    ),
    Meant(
        "error type",
        r"forward-mode autodiff[\s\S]*want ValueError: Linearization",
        "",
        INNER,
    ),
    Meant(
        "we raise",
        r"(has a rule of its own [^\n]* differentiate|unexpected tracer|has returned)"
        r"[\s\S]*want [^\n]*(aval|array)",
        r"jax\.custom_[jv]+p\(",
        "jax misses it where nothing is computed",
    ),
    Meant(
        "we raise",
        r"Reverse-mode differentiation does not work[\s\S]*want [^\n]*aval \w+ \[(\d+, )*0[\],]",
        "",
        "jax misses it where nothing is computed",
    ),
    Meant("we raise", r"does not support complex", "stats", "a density of a complex number"),
    Meant("we raise", r"repeats must be integers", r"repeat\(", "a dtype that NumPy refuses, too"),
    Meant("we raise", r"repeats must not be neg", r"repeat\(", "numbers that NumPy refuses, too"),
    Meant("error type", r"want NotImplementedError: scatter_(apply JVP|mul grad)", "", INNER),
    Meant("error type", r"want ValueError: Invalid integer data type 'V'", "", INNER),
    Meant("error type", r"want ValueError: Operands must have the same tree", "", INNER),
    Meant("error type", r"want AssertionError", "", "an assertion of jax"),
    Meant("error type", r"repeats must not be neg[\s\S]*want OverflowError", "", INNER),
    Meant(
        "error type",
        r"got ValueError: Reverse-mode[\s\S]*want TypeError: can't apply forward",
        "",
        "a program with two errors; jax raises the other one",
    ),
    Meant("error type", r"custom_jvp.* not implemented|'custom_lin' not", "", INNER),
    Meant("error type", r"IndivisibleError", "", "a private type, which is a ValueError"),
    Meant(
        "shape", r"want .*\[(\d+, )*0[\],]", r"jnp\.take\(", "right: no indices give their shape"
    ),
    Meant(
        "shape", LONGER, r"lax\.all_to_all\(", "right: jax adds an axis if only the name is mapped"
    ),
    Meant("shape", EMPTY, r"fft\.i?[rh]fft", "right: jax cannot compile that of an empty axis"),
    # A primal that is in a batch, and whose tangent is not.
    *[
        Meant(
            "shape",
            said,
            r"jax\.custom_batching\.custom_vmap\(",
            "right: jax returns an axis too many in forward mode",
            "without_rule(",
        )
        for said in (TWICE, rf"got {SIZES}(\d[\d, ]*)\][\s\S]*want {SIZES}2, \1\]")
    ],
    Meant(
        NOT_FINITE,
        "",
        SPECIAL + r"spence\(",
        "right: no slope below 0, an infinite one at 0",
        "jnp.cos(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SPECIAL + r"beta\(",
        "right: jax has no slope below 0",
        "jnp.add(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*(nan|inf)",
        SPECIAL + r"hyp1f1\(",
        "right: it overflows, which is infinity",
        "(lambda a, b, c: a + b + c)(",
    ),
    Meant(
        "value",
        "",
        SPECIAL + r"hyp1f1\(",
        "right: its slope by `a` where that is 0 is not 0",
        "(lambda a, b, c: a + b + c)(",
    ),
    Meant("error type", r"reduce_xor: axes .* out of range[\s\S]*want IndexError", "", INNER),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"jax\.nn\.log1mexp\(",
        "right: where its slope is 0, that does not bend",
        "jnp.sin(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*nan",
        r"jax\.scipy\.stats\.(gamma|binom|bernoulli)\.(log)?(pdf|pmf|sf)\(",
        "right: the density at NaN is NaN",
        "(lambda x, *rest: sum(rest, x))(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SPECIAL + r"(xlogy|xlog1py)\(",
        "right: what is constant has no tangent, whatever the slope is",
        "(lambda x, y: x + y)(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SPECIAL + r"expi\(",
        "right: it is infinite at infinity",
        "jnp.exp(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*(nan|inf)[\s\S]*want [^\n]*1\.0",
        SPECIAL + r"hyp1f1\(",
        "right: as in SciPy where the second parameter is NaN, infinite or a pole",
        "(lambda a, b, c: a + b + c)(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*nan[\s\S]*want (?![^\n]*nan)",
        r"jnp\.linalg\.pinv\(",
        "right: jax returns zeros for a matrix with an infinite number",
        "(lambda x, *rest: jnp.swapaxes(x, -1, -2))(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*nan[\s\S]*want (?![^\n]*nan)",
        r"(?s)((?:digamma|hessian)\(.*)jax\.jit\(",
        "0 times infinity, which XLA leaves out of some programs",
        r"\1(",
    ),
    Meant(
        NOT_FINITE,
        "",
        r"(?s)np\.nan(?=.*jnp\.interp\(.*period=)",
        "points have no order if one of them is NaN",
        "1.7",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"jax\.scipy\.stats\.gumbel_[lr]\.(log)?pdf\(",
        "right: the density at infinity is 0",
        "(lambda x, *rest: x)(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*-inf",
        r"jax\.scipy\.stats\.bernoulli\.logpmf\(",
        "right: numbers that are not whole have no mass, as in SciPy",
        "(lambda x, p: x * p)(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"lax\.linalg\.cholesky_update\(",
        "right: there are zeros below the diagonal",
        "jnp.matmul(",
    ),
    Meant(
        "value", "", r"linalg\.invhilbert\(", "right: these are whole numbers", "linalg.hilbert("
    ),
    Meant("dtype", "", r"linalg\.pascal\(", "right: float64 holds them", "linalg.hilbert("),
    Meant("we raise", r"eigh_tridiagonal takes vectors", "", "an empty matrix, which jax takes"),
    Meant(
        "dtype",
        r"float64",
        SPECIAL + r"owens_t\(",
        "right: the dtype of its arguments, as that of other functions",
        "jnp.hypot(",
    ),
    Meant(
        "dtype",
        r"complex128",
        SPECIAL + r"sph_harm_y\((.*), n_max=3\)",
        "right: the dtype of the angles, as that of other functions",
        r"(lambda n, m, x, y: jnp.exp(x + y + 0j))(\1)",
    ),
    Meant(
        NOT_FINITE,
        r"got [^\n]*\[1\.0\d*\][\s\S]*want .*nan",
        SPECIAL + r"comb\(",
        "right: there is one way to take all, of however many",
        "jnp.hypot(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SPECIAL + r"bessel_jn\(([^()]*), v=(\d), n_iter=20\)",
        "right: 1 and 0 at 0, which jax divides by",
        r"[jnp.sin(\1)] * \2",
    ),
    Meant(
        NOT_FINITE,
        r"got .*inf",
        r"jax\.scipy\.stats\.cauchy\.log(sf|cdf)\(",
        "right: no mass is behind infinity",
        "(lambda x, *rest: x)(",
    ),
    Meant(
        "value",
        "",
        r"(?s)np\.(?:nan|inf)(?=.*jnp\.histogram(?:2d|dd)\()",
        "limits that are not finite, which NumPy refuses",
        "1.7",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"jax\.scipy\.linalg\.(toeplitz|hankel)\(",
        "right: each number stays where it is; jax multiplies it by 0",
        "(lambda *a: [jnp.outer(x, x) for x in a])(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"(\.at\[[^\]]*\])\.power\(",
        "right: an update of no element has no slope",
        r"\1.add(",
    ),
    Meant(
        "value",
        "",
        r"jnp\.linalg\.matrix_rank\(",
        "right: as in NumPy, where jax's limit overflows",
        "jnp.sum(",
    ),
    Meant(
        "value",
        "",
        r"jnp\.repeat\((\w+), (\w+), total",
        "numbers that NumPy refuses, too",
        r"jnp.repeat(\1, jnp.abs(\2), total",
    ),
    Meant(
        "value",
        "",
        r"jax\.custom_batching\.custom_vmap\((?=[\s\S]*(jvp|linearize|jacfwd|hessian)\()",
        "right: jax maps tangents of a rule of `custom_vmap` twice",
        PLAIN,
    ),
    Meant(
        "value",
        "",
        r"jnp\.intersect1d\(",
        "right: nothing is in an empty array",
        "jnp.union1d(",
    ),
    Meant(
        "value",
        "",
        r"lax\.tanh\(([^()]*), accuracy=[\w.]*\)",
        "digits that 1 - tanh(x) ** 2 loses",
        r"lax.tanh(\1)",
    ),
    Meant(
        "value",
        "",
        r"lax\.all_to_all\(jnp\.(resize|array|zeros)\(",
        "right: jax adds an axis if only the name is mapped",
    ),
    *[
        Meant("value", r"got array bool", written, "right: 1j is true, as in NumPy", instead)
        for written, instead in (
            (r"jnp\.(any|all)\(", "jnp.sum("),
            (r"(\w+)\.(any|all)\(", r"jnp.sum(\1, "),
        )
    ],
    Meant(
        NOT_FINITE,
        "",
        SPECIAL + r"factorial\(",
        "right: it is 0 below 0, and so is its slope",
        "jnp.exp(",
    ),
    Meant(
        NOT_FINITE,
        "",
        r"jnp\.nanmean\(",
        "the tangent of NaN, the mean of nothing",
        "jnp.nansum(",
    ),
    *[
        Meant(
            kind,
            r"inf|nan",
            SPECIAL + r"(betaln|gamma|gammaln)\(",
            "right: digamma at -0.0, and trigamma below 0, as in SciPy",
            "(lambda x, *rest: sum(map(jnp.square, rest), jnp.square(x)))(",
        )
        for kind in (NOT_FINITE, "value")
    ],
    Meant(
        "value",
        r"inf",
        r"[\w.]+\.(digamma|lgamma)\(",
        "right: the limit at -0.0, as in SciPy",
        "(lambda x: 1 / jnp.square(x))(",
    ),
    Meant(
        "value",
        "",
        r"jnp\.logaddexp2\(",
        "right: the slopes at large equal numbers are 1/2",
        "jnp.add(",
    ),
    Meant(
        "value",
        "",
        SPECIAL + r"factorial\(",
        "right: its slope is `digamma`, which loses digits in jax",
        "jnp.exp(",
    ),
    Meant(
        "value",
        "",
        r"jnp\.blackman\(",
        "right: computed in double precision, as in NumPy",
        "jnp.ones(",
    ),
    Meant(
        "weak type",
        "",
        r"lax\.p(sum|min|max|mean)\(",
        "jax's depends on whether it compiles",
        "(lambda x, *rest: x)(",
    ),
    # The slope of `det` is the adjugate; JAX divides by pivots, and gives 0 where they are NaN.
    Meant(
        NOT_FINITE,
        "",
        r"jnp\.linalg\.det\(",
        "right: the slope is the adjugate, which jax loses where a pivot is NaN",
        "jnp.trace(",
    ),
    # grad(lambda x: lax.reduce(x, 1.0, lax.max, (0,)))([0.0]) is 0, and 1 in jax.
    Meant("value", "", REDUCED, "right: the initial value counts, too", "summed("),
    Meant(NOT_FINITE, "", REDUCED, "right: the initial value counts, too", "summed("),
    Meant(
        "value",
        "",
        r"jnp\.digitize\(",
        "right: where an edge is NaN, jax takes the others for falling",
        "(lambda x, bins, right: jnp.zeros(jnp.shape(x), jnp.int32))(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*inf",
        r"jnp\.i0\(|" + SPECIAL + r"(i0|i1|poch)\(",
        "right: too large for the dtype, as in SciPy",
        "(lambda x, *rest: x)(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"[\w.]+\.(igamma|gammainc)\(",
        "right: all of the mass is at 0 for the shape 0, as in SciPy",
        "(lambda a, x: a * x)(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"[\w.]+\.stats\.(poisson|beta|truncnorm|pareto|gamma)\.\w+\(",
        "right: outside of the support the slope is that of a constant",
        "(lambda x, *rest: x)(",
    ),
    Meant(
        "value",
        r"u?int4",
        r"lax\.mulhi\(",
        "right: the upper half of the product",
        "lax.bitwise_and(",
    ),
    Meant(
        "error type",
        r"got TypeError: p\w+ does not accept[\s\S]*want ValueError: shard_map applied",
        "",
        "a program with two errors; jax raises the other one",
    ),
    Meant(
        "value",
        r"2147483647",
        r"jax\.random\.poisson\(",
        "an infinite rate, which NumPy refuses",
        "(lambda key, lam, *rest, **options: jnp.zeros(jnp.shape(lam), jnp.int32))(",
    ),
    Meant(
        "value",
        r"got array bool",
        r"jnp\.signbit\(",
        "the sign of NaN, which no standard gives",
        "jnp.isnan(",
    ),
    Meant(
        "value",
        "",
        r"jax\.random\.gamma\((?=[\s\S]*(jvp|vjp|linearize|jac\w+|hessian|grad)\()",
        "right: the slope of a draw by a large shape is 1",
        "(lambda key, a, *rest, **options: a)(",
    ),
    # In JAX it is 0.5 there.
    Meant(NOT_FINITE, r"got .*nan", BESSEL, "right: the slope at NaN is NaN", "lax.tanh("),
    Meant("value", r"", BESSEL, "right: the slope at NaN is NaN", "lax.tanh("),
    *[
        Meant(
            kind,
            r"want [^\n]*(-inf|\b0\.0\b)",
            r"jax\.scipy\.stats\.dirichlet\.(log)?pdf\(",
            "right: the border of the simplex, as in SciPy",
            "(lambda x, alpha: jnp.sum(x) + jnp.sum(alpha))(",
        )
        for kind in (NOT_FINITE, "value")
    ],
    Meant(
        NOT_FINITE,
        r"got [^\n]*\b0\.0\b[\s\S]*want [^\n]*nan",
        r"jax\.scipy\.stats\.\w+\.(pdf|pmf|cdf|sf)\(" + SLOPES,
        "right: slopes are 0 where the density is 0, and not NaN",
        "(lambda x, *given: sum(given, x))(",
    ),
    Meant(
        "error type",
        r"got ValueError: i?dctn?: Shape should be positive[\s\S]*want TypeError",
        "",
        "SciPy's error for a transform of nothing",
    ),
    Meant(
        "error type",
        r"got TypeError: jac\w+ requires[\s\S]*want NotImplementedError: \w+ rule for",
        "",
        "a program with two errors; jax raises the other one",
    ),
    Meant(
        NOT_FINITE,
        r"got [^\n]*nan",
        r"(lax|jnp)\.linalg\.svd\((?=[\s\S]*inf)",
        "right: a matrix with infinite numbers has no singular values",
        "(lambda x, *rest, **options: [x, x, x])(",
    ),
    Meant(
        NOT_FINITE,
        r"got [^\n]*inf[\s\S]*want [^\n]*nan",
        r"special\.loggamma\(",
        "right: infinite at 0, as in SciPy",
        "special.digamma(",
    ),
    Meant(
        "value",
        r"int32",
        r"lax\.approx_(min|max)_k\(",
        "right: of equal elements the first, as `top_k`",
    ),
    Meant(
        "value",
        r"",
        r"\b(cumlogsumexp|logcumsumexp|logaddexp)\((?=[\s\S]*inf)",
        "right: beside infinity no number has a slope",
    ),
    Meant(
        "value",
        r"float64",
        r"10000000000\.0(?=[\s\S]*(igammac?|gammaincc?)\()",
        "right: as in SciPy for large equal numbers",
    ),
]


def meant(difference: Difference, program: str) -> tuple[str, str]:
    """The reason why a difference may be as it should be, and a program without that reason.

    The first is empty if it is not. The second is empty if there is no need to look.
    """
    found = [row for row in MEANT if row.fits(difference, program)]
    sure = next((row for row in found if not row.instead), None)
    if sure or not found:
        return (sure.reason if sure else ""), ""
    for row in found:
        program = re.sub(row.written, row.instead, program)
    return found[0].reason, program
