"""Solvers for large linear systems, given products with the matrix."""

from perspex.scipy.sparse import linalg as linalg
