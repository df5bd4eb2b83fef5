"""Solvers for large systems of equations whose matrix need not be written out."""

from perspex.scipy.sparse import linalg as linalg
