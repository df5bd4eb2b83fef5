"""Random numbers, drawn from explicit keys.

The same key gives the same numbers, bit for bit the ones that JAX gives, eagerly or inside `jit`.

>>> from perspex import random
>>> key, subkey = random.split(random.key(0))
>>> random.uniform(subkey, (2,)).shape
(2,)
"""

from perspex.base.public import publish as _publish
from perspex.random.continuous import *
from perspex.random.counts import *
from perspex.random.discrete import *
from perspex.random.gammas import *
from perspex.random.keys import *
from perspex.random.multivariate import *
from perspex.random.normals import *
from perspex.random.shuffle import *
from perspex.random.transformed import *
from perspex.random.uniforms import *

_publish(globals())
