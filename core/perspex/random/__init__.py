"""Random numbers, drawn from explicit keys.

The same key gives the same numbers, bit for bit the ones that JAX gives, eagerly or inside `jit`.

>>> from perspex import random
>>> key, subkey = random.split(random.key(0))
>>> random.uniform(subkey, (2,)).shape
(2,)
"""

from perspex.random.continuous import cauchy as cauchy
from perspex.random.continuous import exponential as exponential
from perspex.random.continuous import gumbel as gumbel
from perspex.random.continuous import laplace as laplace
from perspex.random.continuous import logistic as logistic
from perspex.random.counts import binomial as binomial
from perspex.random.counts import geometric as geometric
from perspex.random.counts import multinomial as multinomial
from perspex.random.counts import poisson as poisson
from perspex.random.discrete import bernoulli as bernoulli
from perspex.random.discrete import categorical as categorical
from perspex.random.discrete import rademacher as rademacher
from perspex.random.discrete import randint as randint
from perspex.random.gammas import ball as ball
from perspex.random.gammas import beta as beta
from perspex.random.gammas import chisquare as chisquare
from perspex.random.gammas import dirichlet as dirichlet
from perspex.random.gammas import f as f
from perspex.random.gammas import gamma as gamma
from perspex.random.gammas import generalized_normal as generalized_normal
from perspex.random.gammas import loggamma as loggamma
from perspex.random.gammas import t as t
from perspex.random.keys import Key as Key
from perspex.random.keys import PRNGKey as PRNGKey
from perspex.random.keys import clone as clone
from perspex.random.keys import fold_in as fold_in
from perspex.random.keys import key as key
from perspex.random.keys import key_data as key_data
from perspex.random.keys import key_dtype as key_dtype
from perspex.random.keys import key_impl as key_impl
from perspex.random.keys import split as split
from perspex.random.keys import wrap_key_data as wrap_key_data
from perspex.random.multivariate import multivariate_normal as multivariate_normal
from perspex.random.multivariate import orthogonal as orthogonal
from perspex.random.normals import normal as normal
from perspex.random.normals import truncated_normal as truncated_normal
from perspex.random.shuffle import choice as choice
from perspex.random.shuffle import permutation as permutation
from perspex.random.transformed import double_sided_maxwell as double_sided_maxwell
from perspex.random.transformed import lognormal as lognormal
from perspex.random.transformed import maxwell as maxwell
from perspex.random.transformed import pareto as pareto
from perspex.random.transformed import rayleigh as rayleigh
from perspex.random.transformed import triangular as triangular
from perspex.random.transformed import wald as wald
from perspex.random.transformed import weibull_min as weibull_min
from perspex.random.uniforms import bits as bits
from perspex.random.uniforms import uniform as uniform
