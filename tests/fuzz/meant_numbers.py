"""Numbers that differ as they should, each with its reason."""

from __future__ import annotations

from fuzz.meant_row import Meant

NOT_FINITE = "NaN or infinity"
REDUCED = r"lax\.reduce\("
BESSEL = r"lax\.bessel_i1e\(|jax\.scipy\.special\.i1e?\("
# Instead of `custom_vmap`: a function whose rule is never called.
PLAIN = (
    "(lambda f: type('Plain', (), {'__call__': lambda self, *a: f(*a), "
    "'def_vmap': lambda self, rule: rule})())("
)
# A derivative is asked for further down.
SLOPES = r"(?=[\s\S]*(forward|backward|linear|jac\w+|hessian|grad)\()"
SPECIAL = r"jax\.scipy\.special\."
# A derivative of a derivative is asked for further down.
CURVES = r"(?=[\s\S]*(hessian|(ward|jac\w+|grad)\([^\n]*(ward|jac\w+|grad))\()"
# Arguments, which may contain brackets.
NESTED = r"([^()]*(?:\([^()]*\)[^()]*)*)"
NUMBERS = [
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
    Meant(
        NOT_FINITE,
        r"got [^\n]*\b1\.0\d*\b[\s\S]*want .*nan",
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
        SLOPES + r"jnp\.logaddexp\(",
        "right: beside an infinity, a number has no part in the sum",
        "(lambda x, y: jnp.logaddexp(jnp.clip(x, -1e4, 1e4), jnp.clip(y, -1e4, 1e4)))(",
    ),
    Meant(
        "value",
        "",
        CURVES + r"jnp\.hypot\(",
        "right: its curvature is what a cancellation leaves, in jax less of it",
        "jnp.add(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SLOPES + SPECIAL + r"(log_ndtr|sici)\(",
        "right: it is flat at infinity",
        r"(lambda x: jax.scipy.special.\2(jnp.clip(x, -30, 30)))(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SLOPES + r"(jnp|jax\.scipy)\.linalg\.qr\(",
        "right: there are zeros below the diagonal",
        r"(lambda x, **named: "
        r"\2.linalg.qr(jnp.clip(x, -9, 9) + 30 * jnp.eye(*x.shape[-2:]), **named))(",
    ),
    Meant(
        "value",
        "",
        r"\.power\(np\.inf\)",
        "no number is right: integers to an infinite power",
        ".power(2)",
    ),
    Meant(
        NOT_FINITE,
        r"got .*nan",
        SLOPES + SPECIAL + r"exp1\(",
        "right: no numbers below 0",
        "(lambda x: jax.scipy.special.exp1(jnp.abs(x)))(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*nan",
        SLOPES + SPECIAL + r"zeta\(",
        "right: no numbers below 1, and no slopes",
        "(lambda x, q: jax.scipy.special.zeta(jnp.maximum(x, 1.5), q))(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        SLOPES + r"jnp\.multiply\.reduceat\(",
        "right: a product of one has the slope 1",
        "(lambda x, *rest, **named: jnp.multiply.reduceat(jnp.clip(x, -9, 9), *rest, **named))(",
    ),
    Meant(
        NOT_FINITE,
        r"(got|want) .*nan",
        SLOPES + r"jnp\.linalg\.multi_dot\(",
        "products with infinities, in another order",
        "(lambda xs: jnp.linalg.multi_dot([jnp.clip(x, -1e3, 1e3) for x in xs]))(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*inf",
        r"lax\.approx_max_k\(",
        "right: NaN comes first, wherever it stands",
        "(lambda x, *rest, **named: lax.approx_max_k(jnp.nan_to_num(x), *rest, **named))(",
    ),
    Meant(
        NOT_FINITE,
        r"got .*nan",
        r"(?=[^\n]*batch_group_count)lax\.conv_general_dilated\(",
        "an infinity times a zero beyond the edge, which XLA leaves out",
        "(lambda x, y, *rest, **named: "
        "lax.conv_general_dilated(x, jnp.clip(y, -1e3, 1e3), *rest, **named))(",
    ),
    Meant(
        "value",
        "",
        SLOPES + SPECIAL + r"xlogy\(",
        "right: jax takes the logarithm of half precision",
        "(lambda x, y: jax.scipy.special.xlogy(jnp.asarray(x, float), jnp.asarray(y, float)))(",
    ),
    Meant(
        "value",
        r"inf",
        SLOPES + SPECIAL + r"beta\(",
        "right: to the left of 0 it falls",
        "(lambda a, b: jax.scipy.special.beta(a + 0.0, b + 0.0))(",
    ),
    Meant(
        "value",
        r"got .*nan",
        r"jax\.scipy\.stats\.t\.((?:log)?pdf)\(",
        "right: NaN without degrees of freedom, and all digits where there are many",
        r"(lambda x, n, *rest: "
        r"jax.scipy.stats.t.\1(x, jnp.where((n > 0) & (n < 9), n, 1.0), *rest))(",
    ),
    Meant(
        "value",
        "",
        SPECIAL + r"comb\(",
        "right: jax subtracts three large logarithms",
        "(lambda n, k: jax.scipy.special.comb(jnp.clip(n, -5, 5), k))(",
    ),
    Meant(
        "value",
        "",
        r"jax\.scipy\.stats\.bernoulli\.((?:log)?pmf)\(",
        "right: no fraction is drawn, as in SciPy",
        r"(lambda k, *rest: jax.scipy.stats.bernoulli.\1(jnp.round(k), *rest))(",
    ),
    Meant(
        "value",
        r"float64",
        r"jax\.nn\.dot_product_attention\(",
        "right: all of it in float64",
        "(lambda *qkv, **named: jax.nn.dot_product_attention("
        "*[x.astype(jnp.float32) for x in qkv], **named))(",
    ),
    Meant(
        NOT_FINITE,
        r"want .*nan",
        r"jnp\.trapezoid\(",
        "right: of infinities at the ends, jax subtracts one half from the sum",
        "(lambda y, *rest, **named: jnp.trapezoid(jnp.clip(y, -1e3, 1e3), *rest, **named))(",
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
        rf"lax\.approx_(?:min|max)_k\({NESTED}, 1, reduction_dimension=(-?\d+)\)",
        "right: of equal elements the first, as `top_k`",
        r"lax.top_k(\1, 1, axis=\2)",
    ),
    Meant(
        "value",
        r"",
        r"lax\.cumlogsumexp\((?=[\s\S]*inf)",
        "right: beside infinity no number has a slope",
        "lax.cumsum(",
    ),
    Meant(
        "value",
        r"float64",
        r"10000000000\.0(?=[\s\S]*(igammac?|gammaincc?)\()",
        "right: as in SciPy for large equal numbers",
        "1.7",
    ),
    Meant(
        NOT_FINITE,
        r"got [^\n]*nan[\s\S]*want (?![^\n]*nan)",
        r"np\.nan(?=[\s\S]*jax\.scipy\.(stats|special)\.)",
        "right: what is computed of NaN is NaN, and so are its slopes",
        "1.7",
    ),
    # The sine of infinity is NaN, and with it the parameter.
    Meant(
        NOT_FINITE,
        r"got [^\n]*nan[\s\S]*want (?![^\n]*nan)",
        r"np\.inf(?=[\s\S]*jax\.scipy\.stats\.[^\n]*(positive|between)\()",
        "right: what is computed of NaN is NaN, and so are its slopes",
        "1.7",
    ),
    Meant(
        NOT_FINITE,
        "",
        r"3e\+?38(?=[\s\S]*linalg\.)",
        "the squares of its numbers overflow",
        "1.7",
    ),
    Meant(
        "value",
        "complex",
        rf"scipy\.linalg\.solve\({NESTED}, assume_a='pos'\)",
        "right: a Hermitian matrix transposed is its conjugate",
        r"scipy.linalg.solve(\1)",
    ),
    Meant(
        NOT_FINITE,
        "",
        r"3e\+?38(?=[\s\S]*(dot|matmul))",
        "products of its numbers overflow",
        "1.7",
    ),
    Meant(
        NOT_FINITE,
        "",
        r"-?1e-4[02](?=[\s\S]*stats\.norm\.ppf\()",
        "numbers that are 0 or not, as XLA computes in this order or another",
        "0.5",
    ),
]
