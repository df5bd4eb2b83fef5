"""Linear algebra, as `numpy.linalg` has it.

Matrices are the last two axes of an array, the others are a batch. Integers become floats; the
dtypes are float32, float64, complex64 and complex128. Instead of raising `LinAlgError`, what does
not exist is NaN or infinite, as nothing is known of the numbers while a program is traced.

All functions can be differentiated; `perspex.lax.linalg` names the sources of the derivatives.
"""

from perspex.numpy.linalg.equations import *
from perspex.numpy.linalg.factorizations import *
from perspex.numpy.linalg.products import *
from perspex.numpy.norms import cond as cond
from perspex.numpy.norms import matrix_norm as matrix_norm
from perspex.numpy.norms import matrix_rank as matrix_rank
from perspex.numpy.norms import norm as norm
from perspex.numpy.norms import vector_norm as vector_norm
from perspex.numpy.products import matmul as matmul
from perspex.numpy.products import vecdot as vecdot
