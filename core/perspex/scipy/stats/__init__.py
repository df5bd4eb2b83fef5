"""Distributions and statistics of samples: those of `scipy.stats`.

A distribution is a module of functions, such as `norm.logpdf(x, loc, scale)`. All of them are
differentiable in their parameters where the distribution is.

>>> from perspex.scipy import stats
>>> round(float(stats.norm.cdf(1.96)), 3)
0.975
"""

from perspex.base.public import publish as _publish
from perspex.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from perspex.scipy.stats.kernel_density import gaussian_kde
from perspex.scipy.stats.ranks import mode, rankdata, sem

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gaussian_kde", "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode",
    "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "rankdata", "sem",
    "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

_publish(globals())
