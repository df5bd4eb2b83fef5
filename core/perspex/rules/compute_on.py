"""The equation of `compute_on`: a call whose operations run on another unit than the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.hlo import frontend
from perspex.ir.jaxpr import ClosedJaxpr, sub_jaxprs
from perspex.jitted.call import Jit

_STREAM = re.compile(r"gpu_stream:(\d+)")
_ATTRIBUTES = {
    "device": {"_xla_compute_type": "dense"},
    "device_host": {"_xla_compute_type": "host"},
    "tpu_sparsecore": {"_xla_compute_type": "sparseoffload"},
}


def attributes(compute_type: str) -> dict[str, str]:
    """What the operations of a computation of that type say to XLA.

    Raises `ValueError` if there is no such type.
    """
    stream = _STREAM.fullmatch(compute_type)
    if stream is not None:
        return {"_xla_stream_annotation": stream[1], "inlineable": "false"}
    if compute_type not in _ATTRIBUTES:
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, "
            "`device`, `tpu_sparsecore`, and `gpu_stream:#`."
        )
    return _ATTRIBUTES[compute_type]


class ComputeOn(Jit):
    """A call of a program that runs as `compute_type` says: its derivatives and batches do, too."""

    name = "compute_on"
    same_variables = False
    quiet: ClassVar[dict[str, Any]] = {
        "donated_invars": ..., "inline": False, "keep_unused": False, "name": ...,
    }  # fmt: skip

    def lower(
        self,
        b: Any,
        *values: Any,
        jaxpr: ClosedJaxpr,
        name: str,
        compute_type: str = "device",
        compiler_options_json: str | None = None,
        **params: Any,
    ) -> Any:
        outs = b.call(jaxpr, values, name)
        manual = b.module.manual
        if not outs or not (manual is None or manual.is_whole):
            return outs  # written out inside of a region, whose devices run all of it
        call, found = outs[0].owner, attributes(compute_type)
        frontend.mark_function(call, found)
        if compute_type in ("device", "tpu_sparsecore"):
            found = {**found, "backend_config": compiler_options_json or "{}"}
        frontend.mark(call, found)
        return outs


compute_on_p = ComputeOn()


def holds_one(jaxprs: Sequence[ClosedJaxpr]) -> bool:
    """Whether programs have such a call, at any depth."""
    return any(
        eqn.primitive is compute_on_p or holds_one(list(sub_jaxprs(eqn.params)))
        for closed in jaxprs
        for eqn in closed.jaxpr.eqns
    )
