"""A call that JAX takes is a call that Perspex takes: the parameters of all public callables.

Real jax 0.12 ran `oracle/recorders/signatures.py` for the records; here Perspex runs it.
"""

from __future__ import annotations

from typing import Any

import pytest

from oracle.records import ours, read

THEIRS: dict[str, str] = read("signatures")


def parameters(signature: str) -> list[tuple[str, str, str]]:
    """Kind, name and default of each parameter: `(x, /, *, axis=0)` as `signatures` writes it."""
    found: list[tuple[str, str, str]] = []
    kind, depth, part = "either", 0, ""
    for letter in signature[1:-1] + ",":
        depth += (letter in "([{") - (letter in ")]}")
        if letter != "," or depth:
            part += letter
            continue
        name, _, default = part.strip().partition("=")
        part = ""
        if name == "/":
            found = [("place", *rest) for _, *rest in found]  # type: ignore[misc]
        elif name == "*":
            kind = "name"
        elif name.startswith("**"):
            found.append(("names", "", ""))
        elif name.startswith("*"):
            found.append(("places", "", ""))
            kind = "name"
        elif name:
            found.append((kind, name, default))
    return found


def refused(theirs: str, given: str) -> list[str]:
    """What a signature refuses that JAX's takes: names and places of parameters, and defaults."""
    wanted, found = parameters(theirs), parameters(given)
    kinds = {kind for kind, _, _ in found}
    by_name = {name: default for kind, name, default in found if kind in ("either", "name")}
    places = [(name, default) for kind, name, default in found if kind in ("either", "place")]
    wrong = [kind for kind in ("places", "names") if (kind, "", "") in wanted and kind not in kinds]
    at = 0
    for kind, name, default in wanted:
        if kind in ("either", "place"):
            name_there, default_there = places[at] if at < len(places) else ("", default)
            at += 1
            if at > len(places) and "places" not in kinds:
                wrong.append(f"{name}: not by position")
            elif kind == "either" and name_there not in (name, ""):
                wrong.append(f"{name}: is called {name_there}")
        elif kind == "name":
            default_there = by_name.get(name, "")
        else:
            continue
        if "names" in kinds and name not in by_name:
            continue
        if kind != "place" and name not in by_name:
            wrong.append(f"{name}: not by name")
        elif "..." not in (default, default_there) and default != default_there:
            wrong.append(f"{name}: {default_there or 'required'} instead of {default}")
    return wrong


# ---- What is refused, and why: a row that is mended has to leave its table ----------------------

# JAX takes `out` and `where` to refuse them.
UFUNCS = (
    "jax.numpy / add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and "
    "logical_or logical_xor maximum minimum multiply negative subtract"
)
# Classes that users do not make; ours are made of other things.
MADE_OTHERWISE = "jax / Shard|jax.core / ShapedArray|jax.stages / Compiled Lowered Traced"
# Written out in ours, where JAX hands everything on.
WRITTEN_OUT = (
    "jax / NamedSharding|jax.sharding / NamedSharding|"
    "jax.lax / random_gamma_grad|jax.lax / psum_scatter_start|jax.numpy / set_printoptions|"
    "Array / block_until_ready|make_jaxpr(f)(x) / replace"
)
OTHER = {
    # Rules that are told which tangents are zero, or that keep logs: not yet built.
    "jax / custom_gradient": "fun with_logs remat with_accums",
    "jax.custom_derivatives / custom_gradient": "fun with_logs remat with_accums",
    "jax / linearize": "in_nzs",
    # It ignores misspelt names.
    "jax.experimental.jet / jet": "names",
    "jax / vjp": "saveable_args in_nzs",
    "custom_vjp(f) / defvjp": "generic_batching",
    # Compiling for other devices than the arguments': not yet built.
    "Lowered / compile": "device_assignment",
    # Private parameters of JAX, and a class that `checkify` makes.
    "jax.ref / swap": "_function_name",
    # The default is a set of classes, whose names tell where they are.
    "jax.experimental.checkify / checkify": "errors",
    "jax.experimental.checkify / Error": "_pred _code _metadata _payload",
    # One function with `jax.dtypes.issubdtype`, where JAX calls them `a` and `b`.
    "jax.numpy / issubdtype": "arg1 arg2",
    "jax.lax / mul": "out_dtype",
    "jax.numpy / einsum": "optimize",
    "x.at[i] / get": "strategy",
}
# Attributes of objects that Perspex lacks; docs/names.md lists what modules lack.
ABSENT = {
    "Traced": "closure_convert donate_argnums effects lojax physicalize with_consts_as_arg",
    "Lowered": "donate_argnums",
    "Compiled": "call donate_argnums",
    "custom_jvp(f)": "jvp",
    "custom_vjp(f)": "bwd defremat defremat_with_logs defvjp_with_accums defvjp_with_logs fwd "
    "generic_batching optimize_remat remat_rules symbolic_zeros with_accums with_logs",
    "custom_vmap(f)": "vmap_rule",
    "config": "add_option check_vma complete_absl_config eager_constant_folding "
    "jax2tf_default_native_serialization meta "
    "use_absl",
    "make_jaxpr(f)(x)": "all_invars map_jaxpr num_consts with_consts",
}


def listed(text: str) -> set[str]:
    """The keys that a table above stands for."""
    groups = [group.partition(" / ") for group in text.split("|")]
    return {f"{owner} / {name}" for owner, _, names in groups for name in names.split()}


def test_every_call_of_jax_is_taken() -> None:
    wrong: dict[str, str] = {}
    compared = 0
    for key, theirs in THEIRS.items():
        given = ours("signatures").get(key, "")
        if key.startswith("jax.debug / visualize_"):
            continue  # views of the notebook, which need not be installed
        if theirs.startswith("(") and given.startswith("("):
            compared += 1
            names = dict.fromkeys(entry.partition(":")[0] for entry in refused(theirs, given))
            if names:
                wrong[key] = " ".join(names)
    assert compared > 1200
    ufuncs = {key for key, names in wrong.items() if names == "places out where"}
    assert ufuncs == listed(UFUNCS)
    rest = {key: names for key, names in wrong.items() if key not in ufuncs}
    otherwise = listed(MADE_OTHERWISE) | listed(WRITTEN_OUT)
    assert otherwise <= set(rest)
    assert {key: names for key, names in rest.items() if key not in otherwise} == OTHER


def test_objects_have_the_attributes_of_jax() -> None:
    absent: dict[str, list[str]] = {}
    for key in THEIRS:
        owner, _, name = key.partition(" / ")
        # What is unsafe is jaxlib's, and newer versions have more of it.
        if not owner.startswith("jax") and key not in ours("signatures") and "unsafe" not in name:
            absent.setdefault(owner, []).append(name)
    assert {owner: " ".join(names) for owner, names in absent.items()} == ABSENT


@pytest.mark.parametrize(
    ("theirs", "given", "found"),
    [
        ("(x, /, *, axis=0)", "(y, /, *, axis=0, more=1)", []),
        ("(x)", "(x, /)", ["x: not by name"]),
        ("(x, y=1)", "(x, *, y=1)", ["y: not by position"]),
        ("(x, y=(1, 2))", "(x, y=(1, 3))", ["y: (1, 3) instead of (1, 2)"]),
        ("(x, y=...)", "(x, y=None)", []),
        ("(x, y)", "(y, x)", ["x: is called y", "y: is called x"]),
        ("(*args, **kwargs)", "(x)", ["places", "names"]),
        ("(x, *, out=None)", "(*args, **kwargs)", []),
        ("(x=1)", "(x)", ["x: required instead of 1"]),
    ],
)
def test_what_counts_as_refused(theirs: str, given: str, found: list[Any]) -> None:
    assert refused(theirs, given) == found
