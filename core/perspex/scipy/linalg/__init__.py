"""Linear algebra, as `scipy.linalg` has it.

Matrices are the last two axes of an array; most functions take a batch of them. What does not exist
is NaN, because nothing is known of the numbers while a program is traced.
"""

from perspex.base.public import publish as _publish
from perspex.scipy.linalg.decompositions import *
from perspex.scipy.linalg.functions import *
from perspex.scipy.linalg.solving import *
from perspex.scipy.linalg.special_matrices import *

_publish(globals())
