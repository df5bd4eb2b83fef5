"""The stages between a function and its executable, to look at.

`jit(f).trace(*args)` gives a `Traced` with the jaxpr; its `lower()` a `Lowered` with the StableHLO;
its `compile()` a `Compiled`, which can be called.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from perspex import tree
from perspex.api.shapes import ShapeDtypeStruct
from perspex.base import xla
from perspex.base.dimensions import is_static
from perspex.ir.avals import ShapedArray, shaped
from perspex.ir.jaxpr import ClosedJaxpr
from perspex.jitted import stateful
from perspex.jitted.compiled import Compiled as Owner
from perspex.jitted.compiled import Origin, Program
from perspex.jitted.signature import Call
from perspex.layout.formats import Format, Layout
from perspex.runtime.executable import Executable, compile_lowered
from perspex.runtime.lowered import Lowered as LoweredProgram
from perspex.runtime.measuring import Exchange
from perspex.runtime.placement import choose_place, is_abstract
from perspex.runtime.planned import Planned, planned

_LATER = "perspex.runtime.communication"  # few ask for it, and it takes 4 ms to import
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

CompilerOptions = dict[str, str | bool | int | float]
"""Options of XLA by name, as `compile(compiler_options=)` takes them."""


class Wrapped(Protocol):
    """What `jit` returns: a function that can also be traced and lowered."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """The type of an argument, and whether it is donated."""

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype


class Traced:
    """A function traced at some types of arguments."""

    def __init__(
        self,
        owner: Owner,
        fun: Callable[..., Any],
        call: Call,
        program: Program,
        place: tuple[Any, bool] | None = None,
    ) -> None:
        self._owner, self._fun, self._call, self._program = owner, fun, call, program
        # The device, and whether results are committed to it, where the arguments do not say.
        self._place = place

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return self._program.closed

    @property
    def fun_name(self) -> str:
        return self._owner.name

    @property
    def in_tree(self) -> Any:
        return self._call.signature.in_tree

    @property
    def out_tree(self) -> Any:
        return self._program.out_tree

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as `(args, kwargs)`."""
        return tree.unflatten(self.in_tree, self._call.signature.avals)

    @property
    def args_info(self) -> Any:
        """The types of the arguments and whether they are donated, as `(args, kwargs)`."""
        avals = self._call.signature.avals
        donated = self._call.donated or (False,) * len(avals)
        return tree.unflatten(self.in_tree, map(ArgInfo, avals, donated))

    @property
    def out_avals(self) -> Any:
        """The types of the results, in their tree."""
        return tree.unflatten(self.out_tree, self.jaxpr.out_avals)

    @property
    def out_info(self) -> Any:
        """The types of the results, in their tree."""
        return _structs(self.out_tree, self.jaxpr.out_avals)

    def lower(
        self, *, lowering_platforms: Sequence[str] | None = None, _private_parameters: Any = None
    ) -> Lowered:
        """Translate the program into StableHLO for the device that it will run on.

        Args:
          lowering_platforms: other platforms to translate it for, to look at: of `"cpu"`,
            `"cuda"`, `"rocm"` and `"tpu"`. They need not be there. A program for several of them
            takes the index of the one that it runs on as its first argument.

        Returns:
          A `Lowered`.

        Raises:
          ValueError: for arguments that lie on different devices, or have symbolic dimensions, or
            for no or unknown platforms.
          NotImplementedError: for an operation that a platform does not have.

        >>> import perspex
        >>> type(perspex.jit(lambda x: x + 1).trace(1.0).lower()).__name__
        'Lowered'
        """
        owner, call = self._owner, self._call
        symbolic = [a for a in call.signature.avals if not is_static(a.shape)]
        if symbolic:
            raise ValueError(
                f"`{owner.name}` was traced with symbolic dimensions, {symbolic[0].str_short()}, "
                "and XLA compiles programs of known shapes. Use export.export(f)(...), which "
                "returns a function for all of them"
            )
        if self._program.pure is not None:
            call = self._program.pure.lowered(call)
        place, committed = self._place or choose_place(
            call.leaves, f"`{owner.name}`", owner.options.device, owner.in_shardings(call)
        )
        platforms = () if lowering_platforms is None else _platforms(lowering_platforms)
        return Lowered(self, owner.lower(self._program, call, place, committed, platforms))

    def compiled(self) -> Compiled:
        """The executable; the one that calls use, where there has been a call.

        Returns:
          A `Compiled`.

        Raises:
          JaxRuntimeError: if XLA cannot compile the program.

        >>> import perspex
        >>> perspex.jit(lambda x: x + 1).trace(1.0).compiled()(2.0)
        Array(3., dtype=float32, weak_type=True)
        """
        owner = self._owner
        for key in owner.keys_of(self._program.closed):
            if key[0] == self._call.signature and self._place in (None, key[1:]):
                return Compiled(self, owner.executables[key])
        return self.lower().compile()


class Lowered:
    """A traced function as StableHLO."""

    def __init__(self, traced: Traced, program: LoweredProgram) -> None:
        self._traced, self._program = traced, program
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self.out_info, self.in_avals = traced.out_info, traced.in_avals
        self.args_info = traced.args_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text.

        Args:
          dialect: `"stablehlo"` (the default), or `"hlo"`, before optimization.
          debug_info: show the source line of each operation, in StableHLO.

        Returns:
          A string.

        Raises:
          ValueError: for another dialect.

        >>> import perspex
        >>> "stablehlo.add" in perspex.jit(lambda x: x + 1).lower(1.0).as_text()
        True
        """
        if dialect in (None, "stablehlo"):
            return self._program.as_text(debug_info)
        if dialect == "hlo":
            return self._hlo().as_hlo_text()
        raise ValueError(f"unknown dialect {dialect!r}: use 'stablehlo' or 'hlo'")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object of the compiler.

        Args:
          dialect: `"stablehlo"` (the default) for an MLIR module, `"hlo"` for an XLA computation.

        Returns:
          An object of jaxlib.

        Raises:
          ValueError: for another dialect.

        >>> import perspex
        >>> lowered = perspex.jit(lambda x: x + 1).lower(1.0)
        >>> "add" in lowered.compiler_ir("hlo").as_hlo_text()
        True
        """
        if dialect in (None, "stablehlo"):
            return self._program.module.module
        if dialect == "hlo":
            return self._hlo()
        raise ValueError(f"unknown dialect {dialect!r}: use 'stablehlo' or 'hlo'")

    def _hlo(self) -> Any:
        return xla.mlir_module_to_xla_computation(
            self._program.as_text(), use_tuple_args=False, return_tuple=False
        )

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of the cost before optimization.

        Returns:
          A dictionary with `flops`, `bytes accessed` and more.

        Raises:
          Nothing.

        >>> import perspex
        >>> perspex.jit(lambda x: x + 1).lower(1.0).cost_analysis()["flops"]
        1.0
        """
        hlo = self._hlo().get_hlo_module()
        return xla.hlo_module_cost_analysis(self._program.client, hlo)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """The executable.

        Args:
          compiler_options: names and values of XLA's options; those of `jit` if not given.

        Returns:
          A `Compiled`.

        A program for an `AbstractMesh` of processors can be looked at (`memory_analysis`,
        `communication`), but not called.

        Raises:
          JaxRuntimeError: if XLA cannot compile the program or does not know an option.
          ValueError: for a mesh without devices of another platform.

        >>> import perspex
        >>> perspex.jit(lambda x: x + 1).lower(1.0).compile()(2.0)
        Array(3., dtype=float32, weak_type=True)
        """
        owner = self._traced._owner
        options = compiler_options or dict(owner.options.compiler_options)
        given = tuple(sorted(options.items()))
        if is_abstract(self._program.place):
            return Compiled(self._traced, planned(self._program, given))
        return Compiled(self._traced, compile_lowered(self._program.to_run(), given))


class Compiled:
    """An executable. Call it with the arguments that were not static."""

    def __init__(self, traced: Traced, executable: Executable | Planned) -> None:
        self._traced = traced
        self._executable: Any = executable
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self.out_info, self.in_avals = traced.out_info, traced.in_avals
        self.args_info = traced.args_info

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the executable; `TypeError` when the arguments are of other types."""
        statics = {i for i in self._traced._owner.options.static_argnums}
        full: list[Any] = list(args)
        for i in sorted(statics):
            full.insert(i, None)
        leaves, in_tree = tree.flatten((tuple(full), kwargs))
        if in_tree != self.in_tree:
            raise TypeError(
                f"the executable of `{self._traced.fun_name}` was compiled for arguments with the "
                f"tree {self.in_tree}, got {in_tree}; leave static arguments out"
            )
        for i, (leaf, aval) in enumerate(
            zip(leaves, self._traced._call.signature.avals, strict=True)
        ):
            given = shaped(leaf)
            if given.shape != aval.shape or given.dtype != aval.dtype:
                name = self._traced._owner.argument_names(in_tree)[i]
                raise TypeError(
                    f"the executable of `{self._traced.fun_name}` was compiled for "
                    f"`{name}`: {aval.str_short()}, got {given.str_short()}; "
                    "lower and compile it again for these types, or call the jitted function"
                )
        pure = self._traced._program.pure
        if pure is None:
            return tree.unflatten(self.out_tree, self._executable(leaves))
        held = stateful.hold(pure, self._traced._call._replace(leaves=leaves))
        return tree.unflatten(self.out_tree, held.settle(self._executable(held.call.leaves)))

    @property
    def input_shardings(self) -> Any:
        """How the arguments lie on devices, as `(args, kwargs)`."""
        return tree.unflatten(
            self.in_tree, self._executable.in_shardings[: self.in_tree.num_leaves]
        )

    @property
    def output_shardings(self) -> Any:
        """How the results lie on devices, in their tree."""
        return tree.unflatten(
            self.out_tree, self._executable.out_shardings[: self.out_tree.num_leaves]
        )

    @property
    def input_formats(self) -> Any:
        """How the arguments lie on devices and in their memory, as `(args, kwargs)`."""
        return tree.map(_format, self.args_info, self.input_shardings)

    @property
    def output_formats(self) -> Any:
        """How the results lie on devices and in their memory, in their tree."""
        return tree.map(_format, self.out_info, self.output_shardings)

    def as_text(self) -> str:
        """The optimized program as text.

        Programs that compute the same share an executable; the names and lines are this program's.

        Returns:
          HLO, one module after another.

        Raises:
          JaxRuntimeError: where the platform does not offer it.

        >>> import perspex
        >>> "HloModule" in perspex.jit(lambda x: x + 1).lower(1.0).compile().as_text()
        True
        """
        return self._executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of the cost.

        Returns:
          A dictionary with `flops`, `bytes accessed` and more.

        Raises:
          JaxRuntimeError: where the platform does not offer it.

        >>> import perspex
        >>> perspex.jit(lambda x: x + 1).lower(1.0).compile().cost_analysis()["flops"]
        1.0
        """
        found = self._executable.shown.cost_analysis()
        return found[0] if isinstance(found, list) else found

    def memory_analysis(self) -> Any:
        """The memory that the program takes, in bytes.

        Returns:
          An object with `argument_size_in_bytes`, `output_size_in_bytes`, `temp_size_in_bytes` and
          `generated_code_size_in_bytes`.

        Raises:
          JaxRuntimeError: where the platform does not offer it.

        >>> import perspex
        >>> perspex.jit(lambda x: x + 1).lower(1.0).compile().memory_analysis().output_size_in_bytes
        4
        """
        return self._executable.shown.get_compiled_memory_stats()

    def communication(self) -> list[Exchange]:
        """What the devices send each other in one run, by line of your code.

        Returns:
          A list of `Exchange`, those that send the most first: the line as `place.file` and
          `place.line`, the `collective` as XLA calls it, the bytes that each device `sent` (by the
          ring algorithms), how many `times`, the size of the `group` of devices that exchange with
          each other, and an estimated `share` of the program's work. It is empty on one device.

        >>> import perspex
        >>> perspex.jit(lambda x: x + 1).lower(1.0).compile().communication()
        []
        """
        return importlib.import_module(_LATER).communication(self._executable)

    def lowered_again(self, numbers: Mapping[Any, int]) -> Lowered:
        """The StableHLO that it was compiled from, whose locations name the equations.

        `numbers` number them by the variables that they bind. For listings; not to be compiled.
        """
        return Lowered(self._traced, self._executable.lowered_again(numbers))

    def runtime_executable(self) -> Any:
        """The executable of jaxlib."""
        return self._executable.xla


def _structs(out_tree: Any, avals: list[ShapedArray]) -> Any:
    return tree.unflatten(
        out_tree, [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    )


def tracer(owner: Owner, fun: Callable[..., Any]) -> Callable[..., Traced]:
    """`jit(fun).trace`. It keeps `fun` alive, which `owner` does not."""

    def trace(*args: Any, **kwargs: Any) -> Traced:
        call = owner.call(args, kwargs)
        return Traced(owner, fun, call, owner.trace(call))

    return trace


def _platforms(names: Sequence[str]) -> tuple[str, ...]:
    """The platforms that a user names, checked."""
    found = tuple(names)
    if isinstance(names, str) or not found or not all(name in PLATFORMS for name in found):
        raise ValueError(
            f"lowering_platforms takes a sequence of names of {', '.join(PLATFORMS)}, got {names!r}"
        )
    return found


def _format(info: Any, sharding: Any) -> Format:
    return Format(None if sharding is None else Layout.for_array(info), sharding)


def lowerer(owner: Owner, fun: Callable[..., Any]) -> Callable[..., Lowered]:
    """`jit(fun).lower`."""
    trace = tracer(owner, fun)
    return lambda *args, **kwargs: trace(*args, **kwargs).lower()


def shape_evaluator(owner: Owner, fun: Callable[..., Any]) -> Callable[..., Any]:
    """`jit(fun).eval_shape`."""
    trace = tracer(owner, fun)
    return lambda *args, **kwargs: trace(*args, **kwargs).out_info


def traced_again(origin: Origin, device: str) -> Traced | None:
    """The `Traced` of a program that was compiled earlier, made without tracing.

    Args:
      origin: from the event `compile`.
      device: that of the event.

    Returns:
      What `jit(f).trace(*args)` gave or would have given then; `None` once the function or its
      program is gone.
    """
    owner, closed = origin.owner(), origin.closed()
    if owner is None or closed is None or owner.fun is None:
        return None
    for key in owner.keys_of(closed):
        signature, place, committed = key
        if str(place) == device:
            call = Call([], signature, _never, tuple(owner.executables[key].donated))
            return Traced(owner, owner.fun, call, owner.programs[signature], (place, committed))
    return None


def _never(*args: Any) -> Any:
    raise AssertionError("the call of a program that is only looked at")
