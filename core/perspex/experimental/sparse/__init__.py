"""Sparse arrays: formats, operations on them, and `sparsify` for functions of dense arrays."""

from perspex.base.public import publish as _publish
from perspex.experimental.sparse import ad as ad
from perspex.experimental.sparse import api as api
from perspex.experimental.sparse import base as _base
from perspex.experimental.sparse import bcoo as bcoo
from perspex.experimental.sparse import bcsr as bcsr
from perspex.experimental.sparse import coo as coo
from perspex.experimental.sparse import csr as csr
from perspex.experimental.sparse import linalg as linalg
from perspex.experimental.sparse import methods as _methods
from perspex.experimental.sparse import random as random
from perspex.experimental.sparse import transform as transform
from perspex.experimental.sparse import util as util
from perspex.experimental.sparse.ad import grad as grad
from perspex.experimental.sparse.ad import jacfwd as jacfwd
from perspex.experimental.sparse.ad import jacobian as jacobian
from perspex.experimental.sparse.ad import jacrev as jacrev
from perspex.experimental.sparse.ad import value_and_grad as value_and_grad
from perspex.experimental.sparse.api import empty as empty
from perspex.experimental.sparse.api import eye as eye
from perspex.experimental.sparse.api import todense as todense
from perspex.experimental.sparse.api import todense_p as todense_p
from perspex.experimental.sparse.base import JAXSparse as JAXSparse
from perspex.experimental.sparse.bcoo import BCOO as BCOO
from perspex.experimental.sparse.bcoo import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from perspex.experimental.sparse.bcoo import bcoo_concatenate as bcoo_concatenate
from perspex.experimental.sparse.bcoo import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from perspex.experimental.sparse.bcoo import bcoo_dot_general as bcoo_dot_general
from perspex.experimental.sparse.bcoo import bcoo_dot_general_p as bcoo_dot_general_p
from perspex.experimental.sparse.bcoo import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from perspex.experimental.sparse.bcoo import (
    bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p,
)
from perspex.experimental.sparse.bcoo import bcoo_dynamic_slice as bcoo_dynamic_slice
from perspex.experimental.sparse.bcoo import bcoo_extract as bcoo_extract
from perspex.experimental.sparse.bcoo import bcoo_extract_p as bcoo_extract_p
from perspex.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from perspex.experimental.sparse.bcoo import bcoo_fromdense_p as bcoo_fromdense_p
from perspex.experimental.sparse.bcoo import bcoo_gather as bcoo_gather
from perspex.experimental.sparse.bcoo import bcoo_multiply_dense as bcoo_multiply_dense
from perspex.experimental.sparse.bcoo import bcoo_multiply_sparse as bcoo_multiply_sparse
from perspex.experimental.sparse.bcoo import bcoo_reduce_sum as bcoo_reduce_sum
from perspex.experimental.sparse.bcoo import bcoo_reshape as bcoo_reshape
from perspex.experimental.sparse.bcoo import bcoo_rev as bcoo_rev
from perspex.experimental.sparse.bcoo import bcoo_slice as bcoo_slice
from perspex.experimental.sparse.bcoo import bcoo_sort_indices as bcoo_sort_indices
from perspex.experimental.sparse.bcoo import bcoo_sort_indices_p as bcoo_sort_indices_p
from perspex.experimental.sparse.bcoo import bcoo_spdot_general_p as bcoo_spdot_general_p
from perspex.experimental.sparse.bcoo import bcoo_squeeze as bcoo_squeeze
from perspex.experimental.sparse.bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from perspex.experimental.sparse.bcoo import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from perspex.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from perspex.experimental.sparse.bcoo import bcoo_todense_p as bcoo_todense_p
from perspex.experimental.sparse.bcoo import bcoo_transpose as bcoo_transpose
from perspex.experimental.sparse.bcoo import bcoo_transpose_p as bcoo_transpose_p
from perspex.experimental.sparse.bcoo import bcoo_update_layout as bcoo_update_layout
from perspex.experimental.sparse.bcsr import BCSR as BCSR
from perspex.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from perspex.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from perspex.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from perspex.experimental.sparse.bcsr import bcsr_dot_general_p as bcsr_dot_general_p
from perspex.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from perspex.experimental.sparse.bcsr import bcsr_extract_p as bcsr_extract_p
from perspex.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from perspex.experimental.sparse.bcsr import bcsr_fromdense_p as bcsr_fromdense_p
from perspex.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from perspex.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from perspex.experimental.sparse.bcsr import bcsr_todense_p as bcsr_todense_p
from perspex.experimental.sparse.coo import COO as COO
from perspex.experimental.sparse.coo import coo_fromdense as coo_fromdense
from perspex.experimental.sparse.coo import coo_fromdense_p as coo_fromdense_p
from perspex.experimental.sparse.coo import coo_matmat as coo_matmat
from perspex.experimental.sparse.coo import coo_matmat_p as coo_matmat_p
from perspex.experimental.sparse.coo import coo_matvec as coo_matvec
from perspex.experimental.sparse.coo import coo_matvec_p as coo_matvec_p
from perspex.experimental.sparse.coo import coo_todense as coo_todense
from perspex.experimental.sparse.coo import coo_todense_p as coo_todense_p
from perspex.experimental.sparse.csr import CSC as CSC
from perspex.experimental.sparse.csr import CSR as CSR
from perspex.experimental.sparse.csr import csr_fromdense as csr_fromdense
from perspex.experimental.sparse.csr import csr_fromdense_p as csr_fromdense_p
from perspex.experimental.sparse.csr import csr_matmat as csr_matmat
from perspex.experimental.sparse.csr import csr_matmat_p as csr_matmat_p
from perspex.experimental.sparse.csr import csr_matvec as csr_matvec
from perspex.experimental.sparse.csr import csr_matvec_p as csr_matvec_p
from perspex.experimental.sparse.csr import csr_todense as csr_todense
from perspex.experimental.sparse.csr import csr_todense_p as csr_todense_p
from perspex.experimental.sparse.random import random_bcoo as random_bcoo
from perspex.experimental.sparse.transform import SparseTracer as SparseTracer
from perspex.experimental.sparse.transform import sparsify as sparsify
from perspex.experimental.sparse.util import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from perspex.experimental.sparse.util import SparseEfficiencyError as SparseEfficiencyError
from perspex.experimental.sparse.util import SparseEfficiencyWarning as SparseEfficiencyWarning

# The operators of the classes stand above all that they are made of.
_base.methods.module = _methods

_publish(*map(vars, (ad, api, bcoo, bcsr, coo, csr, linalg, random, transform, util)))
