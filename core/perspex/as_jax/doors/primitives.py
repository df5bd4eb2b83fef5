"""`jax.extend.core.primitives`: the primitives of JAX, as objects that equations name.

A primitive that JAX has and Perspex does not is an object that no equation here names; to bind it
is an error.
"""

# ruff: noqa: F401
from collections.abc import Callable
from typing import Any, ClassVar

from perspex.as_jax.doors.linear_util import WrappedFun, flat_function
from perspex.as_jax.doors.primitive import Primitive
from perspex.control.cond import cond_p as cond_p
from perspex.control.loops import while_p as while_p
from perspex.control.reduce import reduce_p as reduce_p
from perspex.control.reduce import reduce_window_p as reduce_window_p
from perspex.control.remat import remat_p as remat_p
from perspex.control.scan import scan_p as scan_p
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.jitted.call import Jit
from perspex.jitted.call import jit_p as jit_p
from perspex.ops.arithmetic import abs as abs_p
from perspex.ops.arithmetic import add as add_p
from perspex.ops.arithmetic import bitwise_and as and_p
from perspex.ops.arithmetic import bitwise_not as not_p
from perspex.ops.arithmetic import bitwise_or as or_p
from perspex.ops.arithmetic import bitwise_xor as xor_p
from perspex.ops.arithmetic import ceil as ceil_p
from perspex.ops.arithmetic import clamp as clamp_p
from perspex.ops.arithmetic import clz as clz_p
from perspex.ops.arithmetic import complex as complex_p
from perspex.ops.arithmetic import conj as conj_p
from perspex.ops.arithmetic import copy as copy_p
from perspex.ops.arithmetic import div as div_p
from perspex.ops.arithmetic import eq as eq_p
from perspex.ops.arithmetic import floor as floor_p
from perspex.ops.arithmetic import ge as ge_p
from perspex.ops.arithmetic import gt as gt_p
from perspex.ops.arithmetic import imag as imag_p
from perspex.ops.arithmetic import is_finite as is_finite_p
from perspex.ops.arithmetic import le as le_p
from perspex.ops.arithmetic import lt as lt_p
from perspex.ops.arithmetic import max as max_p
from perspex.ops.arithmetic import min as min_p
from perspex.ops.arithmetic import mul as mul_p
from perspex.ops.arithmetic import ne as ne_p
from perspex.ops.arithmetic import neg as neg_p
from perspex.ops.arithmetic import nextafter as nextafter_p
from perspex.ops.arithmetic import population_count as population_count_p
from perspex.ops.arithmetic import real as real_p
from perspex.ops.arithmetic import rem as rem_p
from perspex.ops.arithmetic import select_n as select_n_p
from perspex.ops.arithmetic import shift_left as shift_left_p
from perspex.ops.arithmetic import shift_right_arithmetic as shift_right_arithmetic_p
from perspex.ops.arithmetic import shift_right_logical as shift_right_logical_p
from perspex.ops.arithmetic import sign as sign_p
from perspex.ops.arithmetic import square as square_p
from perspex.ops.arithmetic import stop_gradient as stop_gradient_p
from perspex.ops.arithmetic import sub as sub_p
from perspex.ops.bessel import bessel_i0e as bessel_i0e_p
from perspex.ops.bessel import bessel_i1e as bessel_i1e_p
from perspex.ops.bits import threefry2x32 as threefry2x32_p
from perspex.ops.collectives import all_gather as all_gather_p
from perspex.ops.collectives import all_to_all as all_to_all_p
from perspex.ops.collectives import axis_index as axis_index_p
from perspex.ops.collectives import pmax as pmax_p
from perspex.ops.collectives import pmin as pmin_p
from perspex.ops.collectives import ppermute as ppermute_p
from perspex.ops.collectives import psum as psum_p
from perspex.ops.convolution import conv_general_dilated as conv_general_dilated_p
from perspex.ops.cumulative import cumlogsumexp as cumlogsumexp_p
from perspex.ops.cumulative import cummax as cummax_p
from perspex.ops.cumulative import cummin as cummin_p
from perspex.ops.cumulative import cumprod as cumprod_p
from perspex.ops.cumulative import cumsum as cumsum_p
from perspex.ops.dynamic import dynamic_slice as dynamic_slice_p
from perspex.ops.dynamic import dynamic_update_slice as dynamic_update_slice_p
from perspex.ops.elementwise import acos as acos_p
from perspex.ops.elementwise import acosh as acosh_p
from perspex.ops.elementwise import asin as asin_p
from perspex.ops.elementwise import asinh as asinh_p
from perspex.ops.elementwise import atan as atan_p
from perspex.ops.elementwise import atan2 as atan2_p
from perspex.ops.elementwise import atanh as atanh_p
from perspex.ops.elementwise import cbrt as cbrt_p
from perspex.ops.elementwise import cos as cos_p
from perspex.ops.elementwise import cosh as cosh_p
from perspex.ops.elementwise import exp2 as exp2_p
from perspex.ops.elementwise import expm1 as expm1_p
from perspex.ops.elementwise import log as log_p
from perspex.ops.elementwise import log1p as log1p_p
from perspex.ops.elementwise import log2 as log2_p
from perspex.ops.elementwise import logistic as logistic_p
from perspex.ops.elementwise import one_minus_square as one_minus_square_p
from perspex.ops.elementwise import rsqrt as rsqrt_p
from perspex.ops.elementwise import sin as sin_p
from perspex.ops.elementwise import sinh as sinh_p
from perspex.ops.elementwise import sqrt as sqrt_p
from perspex.ops.elementwise import tan as tan_p
from perspex.ops.elementwise import tanh as tanh_p
from perspex.ops.families import add_any as add_jaxvals_p
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
from perspex.ops.keys import random_bits as random_bits_p
from perspex.ops.keys import random_fold_in as random_fold_in_p
from perspex.ops.keys import random_seed as random_seed_p
from perspex.ops.keys import random_split as random_split_p
from perspex.ops.linalg.cholesky import cholesky as cholesky_p
from perspex.ops.linalg.eig import eig as eig_p
from perspex.ops.linalg.eigh import eigh as eigh_p
from perspex.ops.linalg.lu import lu as lu_p
from perspex.ops.linalg.qr import householder_product as householder_product_p
from perspex.ops.linalg.qr import qr as qr_p
from perspex.ops.linalg.schur import hessenberg as hessenberg_p
from perspex.ops.linalg.schur import schur as schur_p
from perspex.ops.linalg.svd import svd as svd_p
from perspex.ops.linalg.triangular import triangular_solve as triangular_solve_p
from perspex.ops.linalg.tridiagonal import tridiagonal as tridiagonal_p
from perspex.ops.linalg.tridiagonal import tridiagonal_solve as tridiagonal_solve_p
from perspex.ops.linear import dot_general as dot_general_p
from perspex.ops.memory import device_put as device_put_p
from perspex.ops.names import name_p as name_p
from perspex.ops.order import eq_to as eq_to_p
from perspex.ops.order import le_to as le_to_p
from perspex.ops.order import lt_to as lt_to_p
from perspex.ops.passing import bitcast_convert_type as bitcast_convert_type_p
from perspex.ops.placing import sharding_constraint as sharding_constraint_p
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
from perspex.ops.refs import get_p as get_p
from perspex.ops.refs import swap_p as swap_p
from perspex.ops.shape import concatenate as concatenate_p
from perspex.ops.shape import iota as iota_p
from perspex.ops.shape import pad as pad_p
from perspex.ops.shape import rev as rev_p
from perspex.ops.shape import slice as slice_p
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
from perspex.ops.transcendental import exp as exp_p
from perspex.ops.transcendental import integer_pow as integer_pow_p
from perspex.ops.transcendental import pow as pow_p
from perspex.ops.transcendental import reduce_precision as reduce_precision_p
from perspex.ops.transcendental import round as round_p
from perspex.ops.window_reductions import reduce_window_max as reduce_window_max_p
from perspex.ops.window_reductions import reduce_window_min as reduce_window_min_p
from perspex.ops.window_reductions import reduce_window_sum as reduce_window_sum_p
from perspex.ops.window_reductions import select_and_gather_add as select_and_gather_add_p
from perspex.ops.window_reductions import select_and_scatter_add as select_and_scatter_add_p
from perspex.rules.custom_call import custom_jvp_call as custom_jvp_call_p
from perspex.rules.custom_call import custom_vjp_call as custom_vjp_call_p
from perspex.rules.custom_lin import custom_lin as custom_lin_p
from perspex.rules.implicit import linear_solve_p as linear_solve_p
from perspex.tracing.staging import stage_closed
from perspex.tracing.trace import typeof


class _Unwritten(Primitive):
    """A primitive of JAX that Perspex has no equation for."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(name)
        self.instead = instead

    def bind(self, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"Perspex has no primitive `{self.name}`: {self.instead}. docs/libraries.md lists what "
            "of JAX's inside is here"
        )

    __call__ = bind


class Call(Jit):
    """A call of a program, or of a function that is traced when it is bound."""

    name = "eval_jaxpr"
    quiet: ClassVar[dict[str, Any]] = {}

    def bind(self, *args: Any, **params: Any) -> Any:
        if args and (isinstance(args[0], WrappedFun) or "call_jaxpr" not in params):
            fun, *operands = args
            avals = [typeof(x) for x in operands]
            name = getattr(fun, "__name__", "call")
            closed, consts = stage_closed(flat_function(fun), avals, name)
            return jit_p(*consts, *operands, **_call_params(closed, name))
        closed = params["call_jaxpr"]
        if not isinstance(closed, ClosedJaxpr):
            closed = ClosedJaxpr(closed)
        return jit_p(*closed.consts, *args, **_call_params(closed, closed.jaxpr.name))


def _call_params(closed: ClosedJaxpr, name: str) -> dict[str, Any]:
    return {
        "jaxpr": closed,
        "name": name,
        "donated_invars": (False,) * len(closed.in_avals),
        "inline": False,
        "keep_unused": False,
    }


call_p = closed_call_p = Call()

empty2_p = _Unwritten("empty2", "use lax.full")
polynomial_p = _Unwritten("polynomial", "use lax.polynomial")
random_gamma_p = _Unwritten("random_gamma", "use random.gamma")
select_and_scatter_p = _Unwritten("select_and_scatter", "use lax.reduce_window and its derivative")


def register_call_primitive_rules(
    prim: Any,
    name: str | None = None,
    transpose_rule: Callable[..., Any] | None = None,
    inline_jax_late: bool = True,
) -> None:
    """Make a primitive a call of the program in its param `call_jaxpr`, with all rules.

    Raises:
      NotImplementedError: for a rule of transposition of its own.
    """
    if transpose_rule is not None:
        raise NotImplementedError(
            f"register_call_primitive_rules: {prim} has a `transpose_rule` of its own, but a call "
            "is transformed like jax.jit here; use jax.custom_vjp (docs/names.md)"
        )
    prim.bind = call_p.bind


def create_call_primitive(name: str, inline_jax_late: bool = True) -> Primitive:
    """A primitive that calls a program in its param `call_jaxpr`, with all rules."""
    made: Any = Call()
    made.name = name
    return made
