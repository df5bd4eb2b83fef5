"""Factorizations of matrices and solutions of linear equations, with their derivatives."""

from perspex.ops.linalg import matrices as matrices
from perspex.ops.linalg.cholesky import cholesky as cholesky
from perspex.ops.linalg.eig import eig as eig
from perspex.ops.linalg.eigh import EighImplementation as EighImplementation
from perspex.ops.linalg.eigh import eigh as eigh
from perspex.ops.linalg.lu import lu as lu
from perspex.ops.linalg.lu import lu_pivots_to_permutation as lu_pivots_to_permutation
from perspex.ops.linalg.matrices import triangles as triangles
from perspex.ops.linalg.pinv import pseudo_inverse as pseudo_inverse
from perspex.ops.linalg.qr import geqrf as geqrf
from perspex.ops.linalg.qr import householder_product as householder_product
from perspex.ops.linalg.qr import ormqr as ormqr
from perspex.ops.linalg.qr import qr as qr
from perspex.ops.linalg.schur import hessenberg as hessenberg
from perspex.ops.linalg.schur import schur as schur
from perspex.ops.linalg.solve import cholesky_solve as cholesky_solve
from perspex.ops.linalg.solve import determinant as determinant
from perspex.ops.linalg.solve import determinant_and_adjugate as determinant_and_adjugate
from perspex.ops.linalg.solve import lu_solve as lu_solve
from perspex.ops.linalg.solve import slogdet as slogdet
from perspex.ops.linalg.svd import SvdAlgorithm as SvdAlgorithm
from perspex.ops.linalg.svd import svd as svd
from perspex.ops.linalg.triangular import triangular_solve as triangular_solve
from perspex.ops.linalg.tridiagonal import tridiagonal as tridiagonal
from perspex.ops.linalg.tridiagonal import tridiagonal_solve as tridiagonal_solve
