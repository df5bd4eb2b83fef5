"""What programs call on platforms that are not there: GPUs of both vendors, and TPUs.

A call is recorded with what decides how it is called: its target, attributes, layouts, aliases and
types. What only tells Shardy how to divide it is left out.
"""

from __future__ import annotations

from typing import Any

PLATFORMS = ("cuda", "rocm", "tpu")

# An expression of a function, and the types of its arguments: a letter and sizes.
CASES = """
lambda a: lax.linalg.cholesky(a, symmetrize_input=False) | f4,4 c4,4 d4,4 f2,4,4
lambda a: jnp.linalg.inv(a) | f3,3
lax.linalg.lu | f5,3 f3,5 z4,4 f2,4,4
lambda p: lax.linalg.lu_pivots_to_permutation(p, 5) | i3 i2,3
lambda a: lax.linalg.qr(a, full_matrices=False) | f5,3 f3,5 c4,4 f2,4,3
lax.linalg.qr | f5,3
lambda a: lax.linalg.qr(a, pivoting=True, full_matrices=False) | f5,3 f3,5
lambda a: lax.linalg.householder_product(a, a[0]) | f5,3 c5,3
lambda a: lax.linalg.ormqr(a, a[0], a, left=True, transpose=True) | f5,3
lambda a: lax.linalg.eigh(a, symmetrize_input=False) | f4,4 c4,4 d4,4 f2,4,4
lambda a: lax.linalg.eigh(a, symmetrize_input=False, lower=False) | f4,4
lambda a: lax.linalg.eigh(a, symmetrize_input=False, sort_eigenvalues=False) | f4,4
lambda a: lax.linalg.eigh(a, implementation=lax.linalg.EighImplementation.JACOBI) | f4,4
lambda a: lax.linalg.eigh(a, implementation=lax.linalg.EighImplementation.QR) | f4,4
lambda a: lax.linalg.eigh(a, implementation=lax.linalg.EighImplementation.QDWH) | f4,4
jnp.linalg.eigvalsh | f4,4 f300,300
lambda a: lax.linalg.svd(a, full_matrices=False) | f5,3 f3,5 f2,4,4 c5,3 f40,60 f2000,1500 f3,1500
lax.linalg.svd | f5,3 f3,5 f40,60 f1500,3
lambda a: lax.linalg.svd(a, compute_uv=False) | f5,3 f3,1500
lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.POLAR) | f5,3 f40,50
lambda a: lax.linalg.svd(a, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.JACOBI) | f5,3
lambda a: lax.linalg.svd(a, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR) | f5,3 f3,5
lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.DIVIDE_AND_CONQUER) | f5,3
lambda a: lax.linalg.triangular_solve(a, a, left_side=True) | f4,4 f2,4,4
lambda d: lax.linalg.tridiagonal_solve(d, d, d, d[:, None]) | f8
lambda d: lax.linalg.tridiagonal_solve(d, d, d, d[..., None]) | f2,8 d3,5
lambda d: lax.linalg.tridiagonal_solve(d, d, d, d[:, None], perturb_singular=True) | f8
lax.linalg.tridiagonal | f4,4 c4,4 f2,4,4
lax.linalg.hessenberg | f4,4
lax.linalg.schur | f4,4
lax.linalg.eig | f4,4 c4,4 f2,4,4
jnp.linalg.eigvals | f4,4 z4,4
lambda a: lax.linalg.cholesky_update(a, a[0]) | f4,4 d4,4
lambda a: lax.linalg.symmetric_product(a, a @ a.T, alpha=2.0, beta=0.5) | f4,3
jax.scipy.linalg.expm | f4,4
jax.scipy.linalg.cho_factor | f4,4
jnp.linalg.det | f3,3 f5,5
jnp.linalg.pinv | f5,3
jax.grad(lambda a: jnp.linalg.slogdet(a)[1]) | f4,4
jax.vmap(jnp.linalg.solve) | f2,4,4;f2,4
lambda k: jax.random.bits(jax.random.wrap_key_data(k), (5,)) | u2
lambda k: jax.random.normal(jax.random.wrap_key_data(k, impl="rbg"), (5,)) | u4
lambda k: jax.random.gamma(jax.random.wrap_key_data(k), 2.0, (3,)) | u2
jnp.fft.fft | f8 c4,8
jnp.fft.irfft2 | c4,5
jnp.sort | f8
lambda x: lax.top_k(x, 3) | f8
jnp.cumsum | f8
lax.erf_inv | f8
lambda x: lax.conv(x, x, (1, 1), "SAME") | f2,2,3,3
lambda x: jnp.sort(x, axis=0) | f3,8 c3,8
jnp.argsort | f8
lambda x: lax.sort((x, -x), num_keys=2) | f3,8
lambda x: jnp.lexsort((x, -x)) | f8
lambda x: lax.approx_max_k(x, 3) | f8 f2,8
lambda x: lax.approx_min_k(x, 3, recall_target=0.8) | f8
jnp.median | f8
lambda x: lax.top_k(x, 3) | i2,8
lambda x: lax.cumsum(x, axis=1, reverse=True) | f3,8 i3,8 c3,8 d3,8
lambda x: lax.cumprod(x, axis=0) | f3,8
lambda x: lax.cummax(x, axis=0, reverse=True) | f3,8
lambda x: lax.cummin(x) | i8
lambda x: lax.cumlogsumexp(x) | f8
jax.grad(lambda x: jnp.cumsum(x)[2]) | f8
lambda x: lax.associative_scan(jnp.maximum, x) | f8
lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID") | f4,4
jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum()) | f4,4
lambda x: lax.conv_general_dilated(x, x, (1, 1), ((1, 1), (2, 2)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)) | f2,2,3,3 c2,2,3,3
lambda x: lax.conv_transpose(x, x, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")) | f2,2,3,3
lambda x: lax.conv_general_dilated(x, x[:, :1], (1, 1), "SAME", feature_group_count=2) | f2,2,3,3
jax.grad(lambda x: lax.conv(x, x, (1, 1), "SAME").sum()) | f2,2,3,3
lambda x: jnp.convolve(x, x) | f8
lambda a: lax.dot(a, a, precision="highest") | f4,4 c4,4
lambda a: lax.dot(a, a, preferred_element_type=jnp.float64) | f4,4
lambda a: lax.dot(a, a, precision=lax.DotAlgorithmPreset.TF32_TF32_F32) | f4,4
lambda a: lax.ragged_dot(a, a[None], jnp.array([4])) | f4,4
lambda x: jax.nn.dot_product_attention(x, x, x) | f1,4,2,8
lambda x: jax.nn.dot_product_attention(x, x, x, is_causal=True, implementation="xla") | f1,4,2,8
lambda x: x.at[jnp.array([0, 0])].add(x[:2]) | f8 c8
lambda x: x.at[jnp.array([0, 0])].subtract(x[:2]) | f8
lambda x: x.at[jnp.array([0, 1])].mul(x[:2], unique_indices=True) | f8
lambda x: x.at[0].apply(jnp.sin) | f8
lambda x: jax.ops.segment_sum(x, jnp.arange(8) // 2, num_segments=4) | f8
lambda x: lax.dynamic_update_slice(x, x[:2], (jnp.argmax(x),)) | f8
jnp.asin | f8 c8
jnp.acos | f8 c8
jnp.atan | c8
jnp.asinh | f8 c8
jnp.acosh | f8
jnp.atanh | f8
jnp.tan | f8
jnp.sinh | f8
jnp.cosh | f8
lax.erf | f8 d8
lax.erfc | f8
lax.lgamma | f8
lax.digamma | f8
lambda x: lax.polygamma(2.0 * x, x) | f8
lambda x: lax.zeta(2.0 + x, x) | f8
lambda x: lax.igamma(x, x) | f8
lambda x: lax.igammac(x, x) | f8
lambda x: lax.igamma_grad_a(x, x) | f8
lambda x: lax.random_gamma_grad(x, x) | f8
lambda x: lax.betainc(x, x, x) | f8
lax.bessel_i0e | f8
lax.bessel_i1e | f8
lax.logistic | f8 d8 c8
jax.nn.gelu | f8
jax.nn.softmax | f8
lax.cbrt | f8
lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST) | f8
lambda x: lax.tanh(x, accuracy=lax.Tolerance(atol=0, rtol=0, ulps=2)) | f8
lambda x: lax.reduce_precision(x, 5, 10) | f8
lambda x: lax.nextafter(x, x) | f8
lax.population_count | i8
lax.clz | i8
lambda x: lax.bitcast_convert_type(x, jnp.int32) | f8
lambda x: lax.optimization_barrier(x) | f8
lambda x: lax.composite(lambda y: y + 1, "my.op")(x) | f8
jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))) | f8
jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()) | f8
lambda x: lax.scan(lambda c, y: (c + y, lax.erf_inv(c)), 0.0, x) | f8
lambda x: lax.while_loop(lambda y: y[0] < 1, lambda y: y + 1, x) | f8
lambda x: lax.cond(x[0, 0] > 0, jnp.linalg.cholesky, jnp.linalg.inv, x) | f4,4
lambda x: lax.map(jnp.linalg.cholesky, x) | f2,4,4
jax.vmap(lambda k: jax.random.uniform(jax.random.wrap_key_data(k))) | u3,2
lambda x: jax.ffi.ffi_call("target", x)(x, n=3, name="a", flag=True, xs=np.arange(2.0)) | f8
lambda x: jax.ffi.ffi_call("target", (x, x), has_side_effect=True, input_output_aliases={0: 1})(x) | f8,2
lambda x: jax.ffi.ffi_call("target", x, input_layouts=[(0, 1)], output_layouts=(0, 1))(x) | f8,2
lambda x: jax.ffi.ffi_call("target", x, custom_call_api_version=1, legacy_backend_config="b")(x) | f8
lambda x: jax.ffi.ffi_call("target", x, custom_call_api_version=2, legacy_backend_config="b")(x) | f8
jax.vmap(lambda x: jax.ffi.ffi_call("target", x, vmap_method="broadcast_all")(x)) | f3,8
jax.vmap(lambda x: jax.ffi.ffi_call("target", x, vmap_method="sequential")(x)) | f3,8
lambda x: lax.platform_dependent(x, cpu=jnp.sort, cuda=jnp.linalg.cholesky, tpu=lax.erf_inv, default=jnp.linalg.inv) | f4,4
lambda x: lax.platform_dependent(x, cuda=lambda y: jnp.linalg.cholesky(y), default=lambda y: y) | f4,4
jax.grad(lambda x: lax.platform_dependent(x, cuda=jnp.linalg.cholesky, default=jnp.linalg.inv).sum()) | f4,4
jax.vmap(lambda x: lax.platform_dependent(x, rocm=jnp.linalg.cholesky, default=jnp.linalg.inv)) | f2,4,4
lambda x: jax.device_put(x, jax.memory.Space.Host) | f8
lambda x: jax.device_put(x, jax.memory.Space.Device) | f8
lambda a: sparse.BCOO.fromdense(a, nse=4) @ a | f4,4
lambda a: sparse.BCOO.fromdense(a, nse=4) @ a[0] | f4,4
lambda a: sparse.BCOO.fromdense(a, nse=4).todense() | f4,4
lambda a: a @ sparse.BCOO.fromdense(a, nse=4) | f4,4
lambda a: sparse.BCSR.fromdense(a, nse=4) @ a | f4,4
lambda a: sparse.BCSR.fromdense(a, nse=4) @ a[0] | f4,4
lambda a: sparse.BCSR.fromdense(a, nse=4).todense() | f4,4
lambda a: sparse.bcoo_sum_duplicates(sparse.BCOO.fromdense(a, nse=4), nse=4).data | f4,4
jnp.fft.fft2 | f4,4
jnp.fft.fftn | c2,4,4
jnp.fft.ifft | c8
jnp.fft.ifft2 | c4,4
jnp.fft.ifftn | c2,4,4
jnp.fft.rfft | f8 d8
jnp.fft.rfft2 | f4,4
jnp.fft.rfftn | f2,4,4
jnp.fft.irfft | c5
jnp.fft.irfftn | c2,4,3
jnp.fft.hfft | c5
jnp.fft.ihfft | f8
jnp.fft.fftshift | f8
jnp.fft.ifftshift | f8
lambda x: jnp.fft.fftn(x, axes=(0, 1, 2, 3)) | c2,2,2,2
jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()) | f8
jax.scipy.fft.dct | f8
jnp.linalg.qr | f5,3
jnp.linalg.eig | f4,4
jnp.linalg.eigh | f4,4
jnp.linalg.slogdet | f4,4
jnp.linalg.matrix_rank | f4,4
jnp.linalg.cond | f4,4
lambda a: jnp.linalg.lstsq(a, a[:, 0]) | f5,3
lambda a: jnp.linalg.matrix_power(a, -3) | f4,4
lambda a: jnp.linalg.tensorinv(a, ind=1) | f4,2,2
lambda a: jnp.linalg.solve(a, a) | f4,4
lambda a: jnp.linalg.norm(a, 2) | f4,4
lambda a: jnp.linalg.multi_dot([a, a, a]) | f4,4
jax.scipy.linalg.sqrtm | f4,4
lambda a: jax.scipy.linalg.polar(a) | f4,4
lambda a: jax.scipy.linalg.polar(a, method="svd") | f4,4
jax.scipy.linalg.lu | f4,4
jax.scipy.linalg.lu_factor | f4,4
lambda a: jax.scipy.linalg.qr(a, mode="economic") | f5,3
lambda a: jax.scipy.linalg.qr_multiply(a, a) | f4,4
jax.scipy.linalg.svd | f4,4
lambda d: jax.scipy.linalg.eigh_tridiagonal(d, d[1:], eigvals_only=True) | f8
lambda a: jax.scipy.linalg.block_diag(a, a) | f4,4
lambda a: jax.scipy.linalg.solve_sylvester(a, a, a) | f4,4
lambda a: jax.scipy.linalg.expm_frechet(a, a) | f4,4
lambda a: jax.scipy.linalg.solve(a, a, assume_a="pos") | f4,4
lambda a: jax.scipy.linalg.solve_triangular(a, a, trans=1) | f4,4
lambda a: lax.linalg.triangular_solve(a, a, transpose_a=True, conjugate_a=True) | c4,4 d4,4 f1,4,4
jax.grad(lambda a: lax.linalg.cholesky(a).sum()) | f4,4
jax.grad(lambda a: jnp.linalg.eigh(a)[1].sum()) | f4,4
jax.grad(lambda a: jnp.linalg.svd(a, full_matrices=False)[1].sum()) | f4,4
jax.grad(lambda a: jnp.linalg.qr(a)[0].sum()) | f4,4
jax.vmap(jnp.linalg.qr) | f3,4,4
jax.vmap(lambda a: lax.linalg.eigh(a)) | f3,4,4
lambda k: jax.random.ball(jax.random.wrap_key_data(k), 3, shape=(4,)) | u2
lambda k: jax.random.bernoulli(jax.random.wrap_key_data(k), 0.3, (4,)) | u2
lambda k: jax.random.beta(jax.random.wrap_key_data(k), 1.0, 2.0, (4,)) | u2
lambda k: jax.random.binomial(jax.random.wrap_key_data(k), 5, 0.3, (4,)) | u2
lambda k: jax.random.bits(jax.random.wrap_key_data(k), (4,), "uint8") | u2
lambda k: jax.random.categorical(jax.random.wrap_key_data(k), jnp.zeros((3, 4))) | u2
lambda k: jax.random.cauchy(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.chisquare(jax.random.wrap_key_data(k), 2.0, shape=(4,)) | u2
lambda k: jax.random.choice(jax.random.wrap_key_data(k), 9, (4,)) | u2
lambda k: jax.random.choice(jax.random.wrap_key_data(k), 9, (4,), replace=False) | u2
lambda k: jax.random.dirichlet(jax.random.wrap_key_data(k), jnp.ones(3), (4,)) | u2
lambda k: jax.random.double_sided_maxwell(jax.random.wrap_key_data(k), 0.0, 1.0, (4,)) | u2
lambda k: jax.random.exponential(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.f(jax.random.wrap_key_data(k), 2.0, 3.0, shape=(4,)) | u2
lambda k: jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(k), 3)) | u2
lambda k: jax.random.gamma(jax.random.wrap_key_data(k), 2.0, (4,)) | u2
lambda k: jax.random.generalized_normal(jax.random.wrap_key_data(k), 2.0, (4,)) | u2
lambda k: jax.random.geometric(jax.random.wrap_key_data(k), 0.3, (4,)) | u2
lambda k: jax.random.gumbel(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.gumbel(jax.random.wrap_key_data(k), (4,), mode="high") | u2
lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k), 3)) | u2
lambda k: jax.random.laplace(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.loggamma(jax.random.wrap_key_data(k), 2.0, (4,)) | u2
lambda k: jax.random.logistic(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.lognormal(jax.random.wrap_key_data(k), 1.0, (4,)) | u2
lambda k: jax.random.maxwell(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.multinomial(jax.random.wrap_key_data(k), 5, jnp.ones(3) / 3) | u2
lambda k: jax.random.multivariate_normal(jax.random.wrap_key_data(k), jnp.zeros(3), jnp.eye(3)) | u2
lambda k: jax.random.multivariate_normal(jax.random.wrap_key_data(k), jnp.zeros(3), jnp.eye(3), method="svd") | u2
lambda k: jax.random.multivariate_normal(jax.random.wrap_key_data(k), jnp.zeros(3), jnp.eye(3), method="eigh") | u2
lambda k: jax.random.normal(jax.random.wrap_key_data(k), (4,), "complex64") | u2
lambda k: jax.random.orthogonal(jax.random.wrap_key_data(k), 3) | u2
lambda k: jax.random.pareto(jax.random.wrap_key_data(k), 2.0, (4,)) | u2
lambda k: jax.random.permutation(jax.random.wrap_key_data(k), 9) | u2
lambda k: jax.random.permutation(jax.random.wrap_key_data(k), jnp.eye(3), axis=1, independent=True) | u2
lambda k: jax.random.poisson(jax.random.wrap_key_data(k), 2.0, (4,)) | u2
lambda k: jax.random.rademacher(jax.random.wrap_key_data(k), (4,)) | u2
lambda k: jax.random.randint(jax.random.wrap_key_data(k), (4,), 0, 9) | u2
lambda k: jax.random.rayleigh(jax.random.wrap_key_data(k), 1.0, (4,)) | u2
lambda k: jax.random.t(jax.random.wrap_key_data(k), 2.0, (4,)) | u2
lambda k: jax.random.triangular(jax.random.wrap_key_data(k), 0.0, 0.5, 1.0, (4,)) | u2
lambda k: jax.random.truncated_normal(jax.random.wrap_key_data(k), -1.0, 1.0, (4,)) | u2
lambda k: jax.random.uniform(jax.random.wrap_key_data(k), (4,), "float64") | u2
lambda k: jax.random.wald(jax.random.wrap_key_data(k), 1.0, (4,)) | u2
lambda k: jax.random.weibull_min(jax.random.wrap_key_data(k), 1.0, 2.0, (4,)) | u2
lambda k: lax.rng_bit_generator(k, (4,)) | u4
lambda k: lax.rng_bit_generator(k, (4,), algorithm=lax.RandomAlgorithm.RNG_PHILOX) | u4
lambda k: lax.rng_uniform(k[0], k[1], (4,)) | f2
lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k, impl="rbg"))) | u4
lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k, impl="unsafe_rbg"))) | u4
lambda a: lax.linalg.qdwh(a)[0] | f5,3
jnp.linalg.svdvals | f5,3
lambda a: jnp.linalg.tensorsolve(a, a[:, 0, 0]) | f4,2,2
jax.scipy.linalg.cholesky | f4,4
lambda a: jax.scipy.linalg.cho_solve((a, True), a) | f4,4
lambda a: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), a) | f4,4
jax.scipy.linalg.eigh | f4,4
jax.scipy.linalg.inv | f4,4
jax.scipy.linalg.det | f4,4
jax.scipy.linalg.schur | f4,4
jax.scipy.linalg.hessenberg | f4,4
lambda a: jax.scipy.linalg.rsf2csf(a, a) | f4,4
jax.scipy.fft.dctn | f4,4
jax.scipy.fft.idct | f8
jax.scipy.fft.idctn | f4,4
lambda k: jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(k))) | u2
lambda k: jax.random.key_data(jax.random.key(k[0])) | u2
lambda k: jax.random.PRNGKey(k[0]) | u2
"""  # noqa: E501

# The letters of types.
KINDS = {
    "f": "float32",
    "d": "float64",
    "c": "complex64",
    "z": "complex128",
    "i": "int32",
    "u": "uint32",
}
KEPT = ("call_target_name", "operand_layouts", "result_layouts", "output_operand_aliases")


def cases() -> list[tuple[str, str]]:
    """The functions with the types that each is lowered for."""
    lines = [line.split(" | ") for line in CASES.strip().splitlines()]
    return [(function, types) for function, many in lines for types in many.split()]


def call(operation: Any) -> dict[str, Any]:
    """A call as data."""
    attributes = {name: operation.attributes[name] for name in _names(operation)}
    found = {name: str(attributes[name]) for name in KEPT if name in attributes}
    if found.get("output_operand_aliases") == "[]":
        del found["output_operand_aliases"]
    config = attributes.get("mhlo.backend_config", attributes.get("backend_config"))
    found["config"] = "" if config is None else str(config).strip('"')
    frontend = attributes.get("mhlo.frontend_attributes")
    found["frontend"] = "" if frontend is None else str(frontend)
    found["types"] = str(
        [
            [str(value.type) for value in values]
            for values in (operation.operands, operation.results)
        ]
    )
    return found


def _names(operation: Any) -> list[str]:
    attributes = operation.attributes
    return [getattr(attributes[i], "name", attributes[i]) for i in range(len(attributes))]


def record() -> dict[str, Any]:
    """The calls of each program on each platform, or the type of the error."""
    import jax
    import jax.experimental
    import jax.numpy as jnp
    import jax.ops
    import jax.scipy
    import numpy as np
    from jax import lax
    from jax.experimental import sparse

    space = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "sparse": sparse}
    found: dict[str, Any] = {}
    with jax.enable_x64(True):
        for function, types in cases():
            f = eval(function, dict(space))
            arguments = []
            for text in types.split(";"):
                shape = tuple(int(n) for n in text[1:].split(","))
                arguments.append(jax.ShapeDtypeStruct(shape, KINDS[text[0]]))
            for platform in PLATFORMS:
                key = f"{platform} / {function} | {types}"
                try:
                    traced = jax.jit(f).trace(*arguments)
                    module = traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
                except NotImplementedError:
                    found[key] = "NotImplementedError"
                    continue
                calls: list[dict[str, Any]] = []
                visit(module.operation, calls)
                found[key] = sorted(calls, key=str)
    return found


def visit(operation: Any, calls: list[dict[str, Any]]) -> None:
    """Collect the calls inside an operation."""
    if operation.name == "stablehlo.custom_call":
        calls.append(call(operation))
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                visit(inner.operation, calls)
