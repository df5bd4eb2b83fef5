"""Special functions: those of `scipy.special`."""

from perspex.base.public import publish as _publish
from perspex.nn.normalization import logsumexp as logsumexp
from perspex.scipy.special.entropies import *
from perspex.scipy.special.gammas import *
from perspex.scipy.special.integrals import *
from perspex.scipy.special.normal import *

_publish(globals())
