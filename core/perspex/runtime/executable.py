"""A jaxpr compiled for a device: lowering, compiling, running, and what the fast path needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from perspex import config, events
from perspex.avals import ShapedArray
from perspex.containers import call_registry
from perspex.effects import has_order
from perspex.errors import JaxRuntimeError
from perspex.hlo import Module, types
from perspex.hlo.apart import own_module
from perspex.hlo.numbering import numbered_bytecode
from perspex.jaxpr import ClosedJaxpr, Jaxpr, Literal, count_eqns
from perspex.runtime import cache, disk, interruptible, invalid, memory, pressure, profile
from perspex.runtime import client as platform
from perspex.runtime.callbacks import execute
from perspex.runtime.keys import KeyArray
from perspex.runtime.transfer import put, signature
from perspex.runtime.versions import FAST_PATH_NOTICES_DONATION, FastPath, result_handler
from perspex.source import Source
from perspex.transforms.dce import dce_jaxpr
from perspex.transforms.programs import embed
from perspex.transforms.sequence import TOKEN, sequenced_jaxpr

ArrayImpl = _jax.ArrayImpl

# Constants up to this many elements are written into the program, where XLA can fold them; larger
# ones are arguments, so that they are neither printed, hashed nor compiled.
_EMBEDDED_SIZE = 64


def deleted_error(x: Any) -> RuntimeError:
    """The error for the use of an array whose memory has been given up."""
    return RuntimeError(
        f"Array has been deleted with shape={x.aval.str_short(short_dtypes=False)}. "
        "Its memory was given up by `delete()` or by passing it as a donated argument; "
        "keep a copy, or use the result of the call instead."
    )


def on_device(x: Any, device: Any) -> Any:
    """The buffer of `x` on `device`, moved there if it is elsewhere."""
    if x.__class__ is KeyArray:
        x = x.base
    if x.__class__ is ArrayImpl:
        # C++ asks Python for a call with deleted arguments, so this is where it is noticed.
        if x.is_deleted():
            raise deleted_error(x)
        if x._sharding._device is device:
            return x
        return _jax.batched_copy_array_to_devices_with_sharding(
            [x],
            [platform.device_list(device)],
            [platform.sharding(device)],
            [_jax.ArrayCopySemantics.REUSE_INPUT],
        )[0]
    return put(x, device)


def choose_device(args: Sequence[Any], what: str, given: Any = None) -> tuple[Any, bool]:
    """The device to run on and whether results are committed to it.

    Arrays that the user committed to a device decide. Raises `ValueError` when they disagree.
    """
    chosen = given
    for arg in args:
        array = arg.base if arg.__class__ is KeyArray else arg
        if array.__class__ is ArrayImpl and array._committed:
            device = array._sharding._device
            if chosen is None:
                chosen = device
            elif device is not chosen and given is None:
                raise ValueError(
                    f"{what} got arguments committed to different devices, {chosen} and {device}; "
                    "move them to one device with device_put"
                )
    if chosen is None:
        return platform.default_device(), False
    return chosen, True


def _logical(aval: ShapedArray, out: Any) -> Any:
    """The result of type `aval` that a program returned as an array of plain numbers."""
    if aval.is_float0:
        return np.zeros(aval.shape, aval.dtype)
    return KeyArray(aval, out) if aval.is_extended else out


class Lowered:
    """A program as StableHLO, with what is needed to compile and to call it.

    With `numbers` of its equations, by the variables that these bind, it is for looking at: the
    locations in the module say which equation an operation comes from.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        device: Any,
        *,
        committed: bool = False,
        donated: Sequence[bool] = (),
        keep_unused: bool = False,
        is_ours: bool = False,
        at: Source | None = None,
        origin: Any = None,
        numbers: Mapping[Any, int] | None = None,
    ) -> None:
        start = time.perf_counter()
        self.closed = closed
        self.keep_unused = keep_unused
        # No user has written it: its equations were traced wherever it was called first.
        self.is_ours = is_ours
        self.name = name
        self.device = device
        self.committed = committed
        self.in_avals = closed.in_avals
        self.out_avals = closed.out_avals
        self.signature = signature(self.in_avals)
        self.at = at
        self.origin = origin
        jaxpr, self.kept = self._prune(closed.jaxpr, keep_unused)
        self.donated = list(donated) or [False] * len(self.kept)
        self.has_effects = bool(jaxpr.effects)
        # With ordered effects a token comes after the constants, and as the first result.
        self.is_ordered = has_order(jaxpr.effects)
        if self.is_ordered:
            jaxpr = sequenced_jaxpr(jaxpr)
        jaxpr, self.consts = self._place_constants(jaxpr, closed.consts)
        kept_donated = [d for d, keep in zip(self.donated, self.kept, strict=True) if keep]
        hidden = len(self.consts) + self.is_ordered
        no_attributes: list[dict[str, Any]] = [{}] * hidden
        attributes = no_attributes + self._alias(jaxpr, kept_donated)
        self.module = Module(f"jit_{name}", device.client.platform, numbers)
        with events.Phase("lower", name):
            self.module.main(jaxpr, attributes)
        if events.listeners:
            events.publish("lower", name, start, self.signature, at, eqns=count_eqns(closed.jaxpr))

    def _prune(self, jaxpr: Jaxpr, keep_unused: bool) -> tuple[Jaxpr, list[bool]]:
        # Bodies too: in the derivative of one, dead code may be what cannot be lowered.
        smaller, needed = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
        smaller = smaller.replace(constvars=jaxpr.constvars)
        if keep_unused:
            return smaller.replace(invars=jaxpr.invars), [True] * len(needed)
        return smaller, needed

    def _place_constants(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """Large constants become the first arguments, small ones stay in the program."""
        live = {v for eqn in jaxpr.eqns for v in eqn.invars if v.__class__ is not Literal}
        live.update([v for v in jaxpr.outvars if v.__class__ is not Literal])
        hoisted, values, embedded = [], [], []
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            if var not in live:
                continue
            if isinstance(value, np.ndarray) and value.size <= _EMBEDDED_SIZE:
                embedded.append((var, value))
            else:
                hoisted.append(var)
                values.append(on_device(value, self.device))
        jaxpr = jaxpr.replace(constvars=(), invars=[*hoisted, *jaxpr.invars])
        return embed(jaxpr, embedded), values

    def _alias(self, jaxpr: Jaxpr, donated: Sequence[bool]) -> list[dict[str, Any]]:
        """Give each donated argument to a result of the same type; others are merely freed."""
        attributes: list[dict[str, Any]] = []
        free = [v.aval.physical().strip_weak_type() for v in jaxpr.outvars]
        taken: set[int] = {0} if self.is_ordered else set()
        hidden = len(self.consts) + self.is_ordered
        for var, donate in zip(jaxpr.invars[hidden:], donated, strict=True):
            entry: dict[str, Any] = {}
            if donate:
                wanted = var.aval.physical().strip_weak_type()
                place = next(
                    (i for i, a in enumerate(free) if a is wanted and i not in taken), None
                )
                if place is None:
                    entry["jax.buffer_donor"] = types.boolean(True)
                else:
                    taken.add(place)
                    entry["tf.aliasing_output"] = types.integer(place, 32)
            attributes.append(entry)
        return attributes

    def as_text(self, debug_info: bool = False) -> str:
        return self.module.text(debug_info)

    def compile(self, compiler_options: Sequence[tuple[str, Any]] = ()) -> Executable:
        """The executable for the device of this lowering.

        `compiler_options` are names and values of XLA's debug options; they go before those of
        the flag.
        """
        start = time.perf_counter()
        compiler_options = (*config.compiler_options.value, *compiler_options)
        options = cache.options_for(self.device, compiler_options)
        with events.Phase("compile", self.name):
            key = b""  # a program that calls Python functions is not looked for
            if not self.module.callbacks:
                key = cache.key(self.module.module, self.device, compiler_options)
            found, where = cache.remembered(key), cache.MEMORY
            if found is None:
                pressure.relieve()
                wanted = cache.Wanted(key, self.device, options, self.name, self.signature)
                work, policy = self._compiler(options), disk.policy()
                found, where = interruptible.call(lambda: cache.obtain(wanted, work, policy))
        events.publish(
            "compile",
            self.name,
            start,
            self.signature,
            self.at,
            device=str(self.device),
            source=where,
            bytes=found.size,
            compiled_in=found.seconds,
            key=key.hex(),
            origin=self.origin,
        )
        disk.tell()
        return Executable(self, found.xla)

    def _compiler(self, options: Any) -> Callable[[], Any]:
        """What makes XLA compile this program, from any thread."""
        client, devices = self.device.client, [self.device]
        # Bytes and not the module: compiling lets other threads run, and MLIR's context, which all
        # modules share, is not made for that.
        code, calls = numbered_bytecode(self.module.module), self.module.callbacks

        def work() -> Any:
            if not calls:
                return client.compile_and_load(code, devices, options)
            with own_module(code) as module:
                return client.compile_and_load(
                    module, _jax.DeviceList(tuple(devices)), options, calls
                )

        return work


class Executable:
    """A compiled program. Call it with flat arguments, all of them, on any device."""

    def __init__(self, lowered: Lowered, xla: Any) -> None:
        self.name = lowered.name
        self.closed = lowered.closed
        self.keep_unused = lowered.keep_unused
        self.is_ours = lowered.is_ours
        self.xla = xla
        self.device = lowered.device
        self.committed = lowered.committed
        self.in_avals = lowered.in_avals
        self.out_avals = lowered.out_avals
        self.kept = lowered.kept
        self.consts = lowered.consts
        self.donated = lowered.donated
        self.calls = lowered.module.callbacks
        self.has_effects = lowered.has_effects
        self.is_plain = all(aval.physical() is aval for aval in self.out_avals)
        self.token_place = len(self.consts) if lowered.is_ordered else None
        sharding = platform.sharding(self.device)
        self.handlers = [
            result_handler(aval.physical(), sharding, self.committed)
            for aval in [*[TOKEN] * lowered.is_ordered, *self.out_avals]
        ]

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        if profile.is_on():
            return profile.measured(self, self._run, args)
        return self._run(args)

    def _run(self, args: Sequence[Any]) -> list[Any]:
        device = self.device
        buffers = list(self.consts)
        try:
            buffers += [
                on_device(x, device) for x, keep in zip(args, self.kept, strict=True) if keep
            ]
            if self.calls:
                outs = execute(
                    self.xla,
                    self.calls,
                    buffers,
                    self.handlers,
                    device,
                    self.token_place,
                    self.has_effects,
                )
            else:
                outs = self.xla.execute_sharded(buffers).consume_with_handlers(self.handlers)
        except JaxRuntimeError as error:
            memory.explain(error)
            raise
        if invalid.is_checking():
            invalid.check(self.name, outs)
        if any(self.donated):
            for x, donated in zip(args, self.donated, strict=True):
                if donated and hasattr(x, "delete"):
                    x.delete()
        if not self.is_plain:
            outs = [_logical(aval, out) for aval, out in zip(self.out_avals, outs, strict=True)]
        return outs

    def lowered_again(self, numbers: Mapping[Any, int]) -> Lowered:
        """The module that it was compiled from, with the numbers of equations in its locations."""
        return Lowered(
            self.closed,
            self.name,
            self.device,
            committed=self.committed,
            donated=self.donated,
            keep_unused=self.keep_unused,
            numbers=numbers,
        )

    def fast_path(self, out_tree: Any, result: Any) -> FastPath | None:
        """The record that lets C++ repeat this call; `None` if it has to come back to Python.

        `result` is what the call returned, a tree of the structure `out_tree`.
        """
        if any(self.donated) and not FAST_PATH_NOTICES_DONATION:
            return None
        if invalid.is_checking() or profile.is_on():
            return None
        if self.calls:
            return None  # each run has its token, and tells the callbacks who started it
        if any(aval.is_float0 for aval in self.out_avals):
            return None  # C++ would give the booleans that stand for them
        if not self.is_plain:
            # The program returns the numbers of typed keys, of which C++ is to make keys. It cannot
            # for those in a container of a class that only the default registry knows.
            numbers, out_tree = call_registry.flatten(result)
            if any(x.__class__ is not ArrayImpl for x in numbers):
                return None
        sharding = platform.sharding(self.device)
        taken = len(self.consts) + sum(self.kept)
        return FastPath(
            xla_executable=self.xla,
            out_pytree_def=out_tree,
            in_shardings=[sharding] * taken,
            out_shardings=[sharding] * len(self.out_avals),
            out_avals=[aval.physical() for aval in self.out_avals],
            out_committed=[self.committed] * len(self.out_avals),
            # The constants go before the arguments, and are counted here.
            kept_var_bitvec=[True] * len(self.consts) + self.kept,
            in_device_local_layouts=[None] * taken,
            const_args=self.consts,
        )
