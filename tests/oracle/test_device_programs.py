"""Programs over eight devices, as users and JAX's pages write them: held against real jax.

The recorders `device_*.py` ran under real jax for the records; here Perspex runs them.
"""

from __future__ import annotations

import numpy as np
import pytest

from oracle import records
from perspex.base import xla

# For each program its recorder, and what that has recorded.
FROM = {key: name for name in records.DEVICES for key in records.read(name)}
RECORDS = {key: value for name in records.DEVICES for key, value in records.read(name).items()}
# What Perspex does otherwise, and why. Keys are names of programs, or what these begin with.
MORE = {
    "pmax / ": "JAX has no derivative",
    "pmin / ": "JAX has no derivative",
    "psum_scatter / batch": "JAX fails on a batch of single elements, with a wrong type",
    "all_to_all / ": "JAX's derivative for single elements fails, with a wrong shape",
    "pbroadcast / ": "JAX has it on GPUs alone",
    "ragged_all_to_all / ": "JAX has it on accelerators alone",
    "explicit / checkpoint_name": "JAX lacks a rule for what is cut",
    "explicit / ragged_dot": "JAX lacks a rule for operands on a mesh",
    "explicit / searchsorted": "JAX refuses two operands of a loop that lie differently",
    "explicit / gammaln": "JAX cuts a constant as if it were an operand",
    "explicit / betainc": "JAX cuts a constant as if it were an operand",
    "explicit / cholesky": "JAX refuses batches that are cut",
    "explicit / gradient of cholesky": "JAX refuses batches that are cut",
    "explicit / qr": "JAX refuses batches that are cut",
    "explicit / inv": "JAX refuses batches that are cut",
    "loops / a carry that comes to vary": "JAX asks for a cast of the carry",
    "maps / inner knows outer": "JAX cannot lower the gradient of a map in a map",
    "maps / in a scan": "JAX cannot lower the gradient of a map in a map",
    "maps / in remat": "JAX cannot lower the gradient of a map in a map",
    "maps / in vmap": "JAX cannot lower the gradient of a map in a map",
    "maps / three levels": "JAX cannot lower the gradient of a map in a map",
    "rules / by hand, with types": "JAX asks for a cast of a cotangent that all devices share",
    "rules / custom_vmap": "JAX cannot differentiate it",
    "rules / composite": "JAX has no batch of one",
    "examples / of a scan": "JAX casts what varies already",
    "examples / of a sum in a scan": "an assertion of JAX's fails",
    "examples / of vmap": "JAX casts what varies already",
    "examples / of a branch": "JAX casts what varies already",
    "pmap / of two results": "JAX has no derivative of pmax",
    "typed / cond": "JAX refuses to select among branches that reshard",
    "typed / custom_vjp": "JAX refuses a cotangent that is cut as the result is",
    "typed / shard_map in shard_map": "JAX refuses an operand that is not cut as in_specs say",
    "ambiguous / trace of the cut": "two axes of the mesh cut one axis each",
    "ambiguous / in_specs that differ": "JAX refuses an operand that is not cut as in_specs say",
    "pending / vmap of sums": "JAX has no batch of one",
}
OTHERWISE = {
    "explicit / ragged_dot of cut columns": "both refuse, with errors of two types",
    "explicit / ref set to what is cut otherwise": "JAX gives the ref a value that is cut otherwise"
    " than its type says",
    "explicit / ref set whole": "JAX leaves a value that is whole in a ref whose type is cut",
    "parts / pcast of an unknown axis": "an assertion of JAX's fails",
    "jit / same axis twice": "JAX has a type of its own, which is no ValueError",
    "ambiguous / asked for what cannot be": "the same",
    "ambiguous / in_shardings that differ": "JAX takes no notice of them in another program",
    "ambiguous / out_shardings that differ": "JAX takes no notice of them in another program",
    "pending / greatest, twice": "both refuse, with errors of two types",
    "pending / greatest, added": "both refuse, with errors of two types",
    "pending / unreduced squared": "both refuse, with errors of two types",
}  # fmt: skip


def reason(name: str, reasons: dict[str, str]) -> str | None:
    return next((why for begin, why in reasons.items() if name.startswith(begin)), None)


# What Shardy cannot say before jaxlib 0.12.
OF_EXTREMA = ("pending / greatest", "pending / least", "pending / pm", "pending / psum of the gr")
SAME = [name for name in RECORDS if reason(name, OTHERWISE) is None]


@pytest.mark.parametrize("name", SAME)
def test_programs_are_typed_placed_and_computed_as_in_jax(name: str) -> None:
    found, expected = records.ours(FROM[name])[name], RECORDS[name]
    if name.startswith(OF_EXTREMA) and not xla.KNOWS_PARTS_OF_EXTREMA:
        assert isinstance(found, str) or found == expected
        return
    if isinstance(expected, str):
        assert found == expected or (reason(name, MORE) and isinstance(found, list))
        return
    assert isinstance(found, list), found
    for mine, theirs in zip(found, expected, strict=True):
        if not isinstance(theirs, dict):
            assert mine == theirs
            continue
        assert (mine["type"], mine["parts"]) == (theirs["type"], theirs["parts"])
        np.testing.assert_allclose(mine["values"], theirs["values"], rtol=3e-4, atol=1e-4)


def test_every_program_has_a_record_and_every_difference_is_one() -> None:
    ours = {key: value for name in records.DEVICES for key, value in records.ours(name).items()}
    assert ours.keys() == RECORDS.keys()
    for begin in (*MORE, *OTHERWISE):
        assert any(ours[name] != RECORDS[name] for name in RECORDS if name.startswith(begin)), (
            f"{begin} is no difference any more: take it off the list"
        )


def test_enough_is_compared() -> None:
    """At least 800 programs with values, besides those that JAX lacks."""
    compared = [name for name in SAME if not isinstance(RECORDS[name], str)]
    for recorder in ("shard_maps", "explicit_axes", "shardings"):
        compared += records.section(recorder, "programs")
    compared += records.section("shard_maps", "bodies")
    assert len(compared) >= 800
