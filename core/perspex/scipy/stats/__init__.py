"""Distributions and statistics of samples: those of `scipy.stats`.

A distribution is a module of functions, such as `norm.logpdf(x, loc, scale)`. All of them are
differentiable in their parameters where the distribution is.

>>> from perspex.scipy import stats
>>> round(float(stats.norm.cdf(1.96)), 3)
0.975
"""

from perspex.scipy.stats import bernoulli as bernoulli
from perspex.scipy.stats import beta as beta
from perspex.scipy.stats import betabinom as betabinom
from perspex.scipy.stats import binom as binom
from perspex.scipy.stats import cauchy as cauchy
from perspex.scipy.stats import chi2 as chi2
from perspex.scipy.stats import dirichlet as dirichlet
from perspex.scipy.stats import expon as expon
from perspex.scipy.stats import gamma as gamma
from perspex.scipy.stats import gennorm as gennorm
from perspex.scipy.stats import geom as geom
from perspex.scipy.stats import gumbel_l as gumbel_l
from perspex.scipy.stats import gumbel_r as gumbel_r
from perspex.scipy.stats import laplace as laplace
from perspex.scipy.stats import logistic as logistic
from perspex.scipy.stats import multinomial as multinomial
from perspex.scipy.stats import multivariate_normal as multivariate_normal
from perspex.scipy.stats import nbinom as nbinom
from perspex.scipy.stats import norm as norm
from perspex.scipy.stats import pareto as pareto
from perspex.scipy.stats import poisson as poisson
from perspex.scipy.stats import t as t
from perspex.scipy.stats import truncnorm as truncnorm
from perspex.scipy.stats import uniform as uniform
from perspex.scipy.stats import vonmises as vonmises
from perspex.scipy.stats import wrapcauchy as wrapcauchy
from perspex.scipy.stats.kernel_density import gaussian_kde as gaussian_kde
from perspex.scipy.stats.ranks import mode as mode
from perspex.scipy.stats.ranks import rankdata as rankdata
from perspex.scipy.stats.ranks import sem as sem
