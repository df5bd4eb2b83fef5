"""Linear algebra, as `scipy.linalg` has it.

Matrices are the last two axes of an array; most functions take a batch of them. The arguments
`overwrite_a`, `overwrite_b`, `check_finite` and `debug` have no effect. What does not exist is
NaN, as nothing is known of the numbers while a program is traced.
"""

from perspex.scipy.linalg.decompositions import eigh as eigh
from perspex.scipy.linalg.decompositions import eigh_tridiagonal as eigh_tridiagonal
from perspex.scipy.linalg.decompositions import hessenberg as hessenberg
from perspex.scipy.linalg.decompositions import polar as polar
from perspex.scipy.linalg.decompositions import qr as qr
from perspex.scipy.linalg.decompositions import qr_multiply as qr_multiply
from perspex.scipy.linalg.decompositions import rsf2csf as rsf2csf
from perspex.scipy.linalg.decompositions import schur as schur
from perspex.scipy.linalg.decompositions import svd as svd
from perspex.scipy.linalg.functions import expm as expm
from perspex.scipy.linalg.functions import expm_frechet as expm_frechet
from perspex.scipy.linalg.functions import funm as funm
from perspex.scipy.linalg.functions import sqrtm as sqrtm
from perspex.scipy.linalg.solving import cho_factor as cho_factor
from perspex.scipy.linalg.solving import cho_solve as cho_solve
from perspex.scipy.linalg.solving import cholesky as cholesky
from perspex.scipy.linalg.solving import det as det
from perspex.scipy.linalg.solving import inv as inv
from perspex.scipy.linalg.solving import lu as lu
from perspex.scipy.linalg.solving import lu_factor as lu_factor
from perspex.scipy.linalg.solving import lu_solve as lu_solve
from perspex.scipy.linalg.solving import solve as solve
from perspex.scipy.linalg.solving import solve_sylvester as solve_sylvester
from perspex.scipy.linalg.solving import solve_triangular as solve_triangular
from perspex.scipy.linalg.special_matrices import block_diag as block_diag
from perspex.scipy.linalg.special_matrices import circulant as circulant
from perspex.scipy.linalg.special_matrices import companion as companion
from perspex.scipy.linalg.special_matrices import convolution_matrix as convolution_matrix
from perspex.scipy.linalg.special_matrices import dft as dft
from perspex.scipy.linalg.special_matrices import fiedler as fiedler
from perspex.scipy.linalg.special_matrices import fiedler_companion as fiedler_companion
from perspex.scipy.linalg.special_matrices import hadamard as hadamard
from perspex.scipy.linalg.special_matrices import hankel as hankel
from perspex.scipy.linalg.special_matrices import helmert as helmert
from perspex.scipy.linalg.special_matrices import hilbert as hilbert
from perspex.scipy.linalg.special_matrices import invhilbert as invhilbert
from perspex.scipy.linalg.special_matrices import invpascal as invpascal
from perspex.scipy.linalg.special_matrices import leslie as leslie
from perspex.scipy.linalg.special_matrices import pascal as pascal
from perspex.scipy.linalg.special_matrices import toeplitz as toeplitz
