"""`lax`: the operations of XLA and the loops and branches around them, as plain functions."""

# ruff: noqa: F401, F403 - the primitives are exported under names of their own, as `add_p`.

from typing import TYPE_CHECKING as _TYPE_CHECKING

from perspex.api.placing import with_sharding_constraint as with_sharding_constraint
from perspex.base.public import later as _later
from perspex.base.public import publish as _publish
from perspex.control.cond import cond_p as cond_p
from perspex.control.loops import while_p as while_p
from perspex.control.reduce import reduce_p as reduce_p
from perspex.control.reduce import reduce_window_p as reduce_window_p
from perspex.control.scan import scan_p as scan_p
from perspex.lax import linalg as linalg
from perspex.lax.arithmetic import *
from perspex.lax.associative import *
from perspex.lax.branches import *
from perspex.lax.collectives import *
from perspex.lax.control import *
from perspex.lax.conv_dimensions import *
from perspex.lax.convolution import *
from perspex.lax.dynamic import *
from perspex.lax.elementwise import *
from perspex.lax.exchanges import *
from perspex.lax.generators import *
from perspex.lax.indexing import *
from perspex.lax.joining import *
from perspex.lax.linear import *
from perspex.lax.named_axes import *
from perspex.lax.reductions import *
from perspex.lax.shape import *
from perspex.lax.solve import *
from perspex.lax.sorting import *
from perspex.lax.special import *
from perspex.lax.spectra import *
from perspex.lax.tokens import *
from perspex.lax.values import *
from perspex.lax.windows import *
from perspex.ops.accuracy import AccuracyMode as AccuracyMode
from perspex.ops.accuracy import Tolerance as Tolerance
from perspex.ops.bessel import bessel_i0e as bessel_i0e_p
from perspex.ops.bessel import bessel_i1e as bessel_i1e_p
from perspex.ops.collectives import all_gather as all_gather_p
from perspex.ops.collectives import all_to_all as all_to_all_p
from perspex.ops.collectives import axis_index as axis_index_p
from perspex.ops.collectives import pmax as pmax_p
from perspex.ops.collectives import pmin as pmin_p
from perspex.ops.collectives import ppermute as ppermute_p
from perspex.ops.collectives import psum as psum_p
from perspex.ops.convolution import ConvDimensionNumbers as ConvDimensionNumbers
from perspex.ops.convolution import conv_general_dilated as conv_general_dilated_p
from perspex.ops.cumulative import cumlogsumexp as cumlogsumexp_p
from perspex.ops.cumulative import cummax as cummax_p
from perspex.ops.cumulative import cummin as cummin_p
from perspex.ops.cumulative import cumprod as cumprod_p
from perspex.ops.cumulative import cumsum as cumsum_p
from perspex.ops.dynamic import dynamic_slice as dynamic_slice_p
from perspex.ops.dynamic import dynamic_update_slice as dynamic_update_slice_p
from perspex.ops.elementwise import abs as abs_p
from perspex.ops.elementwise import acos as acos_p
from perspex.ops.elementwise import acosh as acosh_p
from perspex.ops.elementwise import add as add_p
from perspex.ops.elementwise import asin as asin_p
from perspex.ops.elementwise import asinh as asinh_p
from perspex.ops.elementwise import atan as atan_p
from perspex.ops.elementwise import atan2 as atan2_p
from perspex.ops.elementwise import atanh as atanh_p
from perspex.ops.elementwise import bitwise_and as and_p
from perspex.ops.elementwise import bitwise_not as not_p
from perspex.ops.elementwise import bitwise_or as or_p
from perspex.ops.elementwise import bitwise_xor as xor_p
from perspex.ops.elementwise import cbrt as cbrt_p
from perspex.ops.elementwise import ceil as ceil_p
from perspex.ops.elementwise import clamp as clamp_p
from perspex.ops.elementwise import clz as clz_p
from perspex.ops.elementwise import complex as complex_p
from perspex.ops.elementwise import conj as conj_p
from perspex.ops.elementwise import copy as copy_p
from perspex.ops.elementwise import cos as cos_p
from perspex.ops.elementwise import cosh as cosh_p
from perspex.ops.elementwise import div as div_p
from perspex.ops.elementwise import eq as eq_p
from perspex.ops.elementwise import exp as exp_p
from perspex.ops.elementwise import exp2 as exp2_p
from perspex.ops.elementwise import expm1 as expm1_p
from perspex.ops.elementwise import floor as floor_p
from perspex.ops.elementwise import ge as ge_p
from perspex.ops.elementwise import gt as gt_p
from perspex.ops.elementwise import imag as imag_p
from perspex.ops.elementwise import integer_pow as integer_pow_p
from perspex.ops.elementwise import is_finite as is_finite_p
from perspex.ops.elementwise import le as le_p
from perspex.ops.elementwise import log as log_p
from perspex.ops.elementwise import log1p as log1p_p
from perspex.ops.elementwise import log2 as log2_p
from perspex.ops.elementwise import logistic as logistic_p
from perspex.ops.elementwise import lt as lt_p
from perspex.ops.elementwise import max as max_p
from perspex.ops.elementwise import min as min_p
from perspex.ops.elementwise import mul as mul_p
from perspex.ops.elementwise import ne as ne_p
from perspex.ops.elementwise import neg as neg_p
from perspex.ops.elementwise import nextafter as nextafter_p
from perspex.ops.elementwise import one_minus_square as one_minus_square_p
from perspex.ops.elementwise import population_count as population_count_p
from perspex.ops.elementwise import pow as pow_p
from perspex.ops.elementwise import real as real_p
from perspex.ops.elementwise import reduce_precision as reduce_precision_p
from perspex.ops.elementwise import rem as rem_p
from perspex.ops.elementwise import round as round_p
from perspex.ops.elementwise import rsqrt as rsqrt_p
from perspex.ops.elementwise import select_n as select_n_p
from perspex.ops.elementwise import shift_left as shift_left_p
from perspex.ops.elementwise import shift_right_arithmetic as shift_right_arithmetic_p
from perspex.ops.elementwise import shift_right_logical as shift_right_logical_p
from perspex.ops.elementwise import sign as sign_p
from perspex.ops.elementwise import sin as sin_p
from perspex.ops.elementwise import sinh as sinh_p
from perspex.ops.elementwise import sqrt as sqrt_p
from perspex.ops.elementwise import square as square_p
from perspex.ops.elementwise import stop_gradient as stop_gradient_p
from perspex.ops.elementwise import sub as sub_p
from perspex.ops.elementwise import tan as tan_p
from perspex.ops.elementwise import tanh as tanh_p
from perspex.ops.fft import FftType as FftType
from perspex.ops.fft import fft as fft_p
from perspex.ops.halves import mulhi as mulhi_p
from perspex.ops.incomplete import igamma as igamma_p
from perspex.ops.incomplete import igamma_grad_a as igamma_grad_a_p
from perspex.ops.incomplete import igammac as igammac_p
from perspex.ops.incomplete import regularized_incomplete_beta as regularized_incomplete_beta_p
from perspex.ops.indexing import gather as gather_p
from perspex.ops.indexing import scatter as scatter_p
from perspex.ops.indexing import scatter_add as scatter_add_p
from perspex.ops.indexing import scatter_max as scatter_max_p
from perspex.ops.indexing import scatter_min as scatter_min_p
from perspex.ops.indexing import scatter_mul as scatter_mul_p
from perspex.ops.indexing import scatter_sub as scatter_sub_p
from perspex.ops.linear import dot_general as dot_general_p
from perspex.ops.memory import device_put as device_put_p
from perspex.ops.order import eq_to as eq_to_p
from perspex.ops.order import le_to as le_to_p
from perspex.ops.order import lt_to as lt_to_p
from perspex.ops.passing import bitcast_convert_type as bitcast_convert_type_p
from perspex.ops.passing import optimization_barrier as optimization_barrier_p
from perspex.ops.placing import sharding_constraint as sharding_constraint_p
from perspex.ops.precision import DotAlgorithm as DotAlgorithm
from perspex.ops.precision import DotAlgorithmPreset as DotAlgorithmPreset
from perspex.ops.precision import Precision as Precision
from perspex.ops.ragged_exchange import ragged_all_to_all as ragged_all_to_all_p
from perspex.ops.rbg import rng_bit_generator as rng_bit_generator_p
from perspex.ops.rbg import rng_uniform as rng_uniform_p
from perspex.ops.reductions import argmax as argmax_p
from perspex.ops.reductions import argmin as argmin_p
from perspex.ops.reductions import reduce_and as reduce_and_p
from perspex.ops.reductions import reduce_max as reduce_max_p
from perspex.ops.reductions import reduce_min as reduce_min_p
from perspex.ops.reductions import reduce_or as reduce_or_p
from perspex.ops.reductions import reduce_prod as reduce_prod_p
from perspex.ops.reductions import reduce_xor as reduce_xor_p
from perspex.ops.shape import concatenate as concatenate_p
from perspex.ops.shape import iota as iota_p
from perspex.ops.shape import pad as pad_p
from perspex.ops.shape import rev as rev_p
from perspex.ops.shape import slice as slice_p
from perspex.ops.shape import split as split_p
from perspex.ops.shape import stack as stack_p
from perspex.ops.shape import tile as tile_p
from perspex.ops.shape import unstack as unstack_p
from perspex.ops.sorting import approx_top_k as approx_top_k_p
from perspex.ops.sorting import sort as sort_p
from perspex.ops.sorting import top_k as top_k_p
from perspex.ops.special import digamma as digamma_p
from perspex.ops.special import erf as erf_p
from perspex.ops.special import erf_inv as erf_inv_p
from perspex.ops.special import erfc as erfc_p
from perspex.ops.special import lgamma as lgamma_p
from perspex.ops.special import polygamma as polygamma_p
from perspex.ops.special import zeta as zeta_p
from perspex.ops.structural import broadcast_in_dim as broadcast_in_dim_p
from perspex.ops.structural import convert_element_type as convert_element_type_p
from perspex.ops.structural import reduce_sum as reduce_sum_p
from perspex.ops.structural import reshape as reshape_p
from perspex.ops.structural import squeeze as squeeze_p
from perspex.ops.structural import transpose as transpose_p
from perspex.ops.tokens import after_all as after_all_p
from perspex.ops.tokens import create_token as create_token_p
from perspex.ops.window_reductions import reduce_window_max as reduce_window_max_p
from perspex.ops.window_reductions import reduce_window_min as reduce_window_min_p
from perspex.ops.window_reductions import reduce_window_sum as reduce_window_sum_p
from perspex.ops.window_reductions import select_and_gather_add as select_and_gather_add_p
from perspex.ops.window_reductions import select_and_scatter_add as select_and_scatter_add_p
from perspex.ops.windows import GatherDimensionNumbers as GatherDimensionNumbers
from perspex.ops.windows import GatherScatterMode as GatherScatterMode
from perspex.ops.windows import ScatterDimensionNumbers as ScatterDimensionNumbers
from perspex.rules.composite import composite as composite
from perspex.rules.implicit import linear_solve_p as linear_solve_p

_publish(globals(), vars(linalg))

if _TYPE_CHECKING:
    from perspex.lax.ragged import *
    from perspex.lax.scaled import *
else:
    # What few programs use is imported when it is.
    _LATER = {
        "RaggedDotDimensionNumbers": "perspex.lax.ragged",
        "ragged_dot": "perspex.lax.ragged",
        "ragged_dot_general": "perspex.lax.ragged",
        "scaled_dot": "perspex.lax.scaled",
    }
    __getattr__, __dir__ = _later(globals(), _LATER)
