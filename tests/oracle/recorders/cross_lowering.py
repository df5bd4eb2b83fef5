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
"""

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
    import jax.numpy as jnp
    from jax import lax

    space = {"jax": jax, "jnp": jnp, "lax": lax}
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
