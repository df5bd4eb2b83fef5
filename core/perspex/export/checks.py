"""What is checked before a program is written to a file, and how to turn a check off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

_LAPACK = re.compile(r"lapack_[sdcz](\w+)_ffi")
_LAPACK_NAMES = {
    "potrf", "geqrf", "orgqr", "syevd", "geev", "gesdd", "getrf", "sytrd", "gehrd", "gees", "ungqr",
    "heevd", "hetrd", "trsm", "gtsv",
}  # fmt: skip
# The functions that JAX promises to keep for programs in files.
STABLE = {
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
    "cu_threefry2x32_ffi", "hip_threefry2x32_ffi", "cu_lu_pivots_to_permutation",
    "hip_lu_pivots_to_permutation", "cusolver_getrf_ffi", "hipsolver_getrf_ffi",
    "cusolver_geqrf_ffi", "cusolver_orgqr_ffi", "hipsolver_geqrf_ffi", "hipsolver_orgqr_ffi",
    "cusolver_potrf_ffi", "hipsolver_potrf_ffi", "cusolver_syevd_ffi", "hipsolver_syevd_ffi",
    "cusolver_gesvd_ffi", "cusolver_gesvdj_ffi", "hipsolver_gesvd_ffi", "hipsolver_gesvdj_ffi",
    "hipsolver_gesdd_ffi", "cusolver_sytrd_ffi", "hipsolver_sytrd_ffi", "cusparse_gtsv2_ffi",
    "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "LuDecomposition", "ApproxTopK",
    "stablehlo.dynamic_approx_top_k", "stablehlo.dynamic_reduce_window",
    "stablehlo.dynamic_rng_bit_generator", "stablehlo.dynamic_top_k", "shape_assertion",
    "tf.call_tf_function", "tpu_custom_call", "AllocateBuffer", "mosaic_gpu_v2",
}  # fmt: skip


class DisabledSafetyCheck:
    """A check of exported functions that is turned off.

    >>> from perspex import export
    >>> export.DisabledSafetyCheck.custom_call("my_function")
    custom_call:my_function
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The check that a program runs on a platform that it was exported for.

        Returns:
          A `DisabledSafetyCheck`; it acts when the function is called.

        Raises:
          Nothing.

        >>> from perspex import export
        >>> export.DisabledSafetyCheck.platform()
        platform
        """
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The check that a program calls no function that a later version may lack.

        Args:
          target_name: the name of the function that the program may call.

        Returns:
          A `DisabledSafetyCheck`; it acts when the function is exported.

        Raises:
          Nothing.

        >>> from perspex import export
        >>> export.DisabledSafetyCheck.custom_call("f").is_custom_call()
        'f'
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the function that programs may call, if the check is about one.

        Returns:
          A name, or `None`.

        Raises:
          Nothing.

        >>> from perspex import export
        >>> export.DisabledSafetyCheck.platform().is_custom_call() is None
        True
        """
        head, _, target = self._impl.partition(":")
        return target if head == "custom_call" and target else None

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


def operations(op: Any) -> Iterator[Any]:
    """An operation of a module, and all operations within."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from operations(inner.operation)


def called(module: Any) -> dict[str, Any]:
    """The functions outside of a module that it calls: their names, and one call of each."""
    return {
        str(op.attributes["call_target_name"].value): op
        for op in operations(module.operation)
        if op.name == "stablehlo.custom_call"
    }


def check_calls(name: str, module: Any, disabled: Sequence[DisabledSafetyCheck]) -> None:
    """Raise `ValueError` if a program calls a function that a later version may lack."""
    for check in disabled:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(
                f"export: disabled_checks are made by export.DisabledSafetyCheck, got {check!r}; "
                'write DisabledSafetyCheck.custom_call("name") or DisabledSafetyCheck.platform()'
            )
    allowed = {check.is_custom_call() for check in disabled}
    unknown = []
    targets = called(module)
    for target in targets:
        lapack = _LAPACK.fullmatch(target)
        is_stable = target in STABLE or (lapack is not None and lapack[1] in _LAPACK_NAMES)
        if not is_stable and target not in allowed and "ALL" not in allowed:
            unknown.append(target)
    if any("callback" in target for target in targets):
        raise NotImplementedError(
            f"`{name}` calls Python functions (`debug.print`, `pure_callback` and the like), which "
            "cannot be written to a file; serialization of host_callbacks is not yet implemented. "
            "Remove the calls from the function that you export"
        )
    if unknown:
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility "
            f"guarantees: `{name}` calls {', '.join(sorted(unknown))}. To export it all the same, "
            "pass disabled_checks=[export.DisabledSafetyCheck.custom_call('<target>')]"
        )
