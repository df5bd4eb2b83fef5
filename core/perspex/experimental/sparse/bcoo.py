"""Batched sparse arrays as lists of elements with indices: all functions on `BCOO`."""

from perspex.experimental.sparse.formats import BCOO as BCOO
from perspex.experimental.sparse.layout import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from perspex.experimental.sparse.layout import bcoo_concatenate as bcoo_concatenate
from perspex.experimental.sparse.layout import bcoo_reshape as bcoo_reshape
from perspex.experimental.sparse.layout import bcoo_rev as bcoo_rev
from perspex.experimental.sparse.layout import bcoo_squeeze as bcoo_squeeze
from perspex.experimental.sparse.layout import bcoo_update_layout as bcoo_update_layout
from perspex.experimental.sparse.products import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
)
from perspex.experimental.sparse.products import bcoo_dot_general as bcoo_dot_general
from perspex.experimental.sparse.products import bcoo_dot_general_p as bcoo_dot_general_p
from perspex.experimental.sparse.products import (
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from perspex.experimental.sparse.products import (
    bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p,
)
from perspex.experimental.sparse.products import bcoo_multiply_dense as bcoo_multiply_dense
from perspex.experimental.sparse.products import bcoo_multiply_sparse as bcoo_multiply_sparse
from perspex.experimental.sparse.products import bcoo_spdot_general_p as bcoo_spdot_general_p
from perspex.experimental.sparse.slicing import bcoo_dynamic_slice as bcoo_dynamic_slice
from perspex.experimental.sparse.slicing import bcoo_gather as bcoo_gather
from perspex.experimental.sparse.slicing import bcoo_reduce_sum as bcoo_reduce_sum
from perspex.experimental.sparse.slicing import bcoo_slice as bcoo_slice
from perspex.experimental.sparse.structure import bcoo_eliminate_zeros as bcoo_eliminate_zeros
from perspex.experimental.sparse.structure import bcoo_extract as bcoo_extract
from perspex.experimental.sparse.structure import bcoo_extract_p as bcoo_extract_p
from perspex.experimental.sparse.structure import bcoo_fromdense as bcoo_fromdense
from perspex.experimental.sparse.structure import bcoo_fromdense_p as bcoo_fromdense_p
from perspex.experimental.sparse.structure import bcoo_sort_indices as bcoo_sort_indices
from perspex.experimental.sparse.structure import bcoo_sort_indices_p as bcoo_sort_indices_p
from perspex.experimental.sparse.structure import bcoo_sum_duplicates as bcoo_sum_duplicates
from perspex.experimental.sparse.structure import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from perspex.experimental.sparse.structure import bcoo_todense as bcoo_todense
from perspex.experimental.sparse.structure import bcoo_todense_p as bcoo_todense_p
from perspex.experimental.sparse.structure import bcoo_transpose as bcoo_transpose
from perspex.experimental.sparse.structure import bcoo_transpose_p as bcoo_transpose_p
