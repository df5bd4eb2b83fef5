"""`jit`: a function compiled as a whole.

Called from outside every trace, a jitted function is a C++ callable that repeats a compiled
program; on a miss, `Compiled.miss` traces, lowers and compiles. Called while something is traced,
it becomes one equation that holds the function's jaxpr (`call`).
"""

from __future__ import annotations

import threading
import time
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from perspex import config, tree
from perspex.base import events, source, xla
from perspex.base.recent import Recent
from perspex.ir.avals import shaped
from perspex.ir.jaxpr import ClosedJaxpr, count_eqns
from perspex.jitted import misses, stale, stateful
from perspex.jitted.call import hoisted, jit_p
from perspex.jitted.differences import Difference, Miss
from perspex.jitted.signature import (
    Call,
    Key,
    Options,
    Signature,
    argument_names,
    broadcast_places,
    constrained,
    function_name,
    parameters_of,
    position_name,
    take_apart,
)
from perspex.runtime import invalid, key_reuse, stopping
from perspex.runtime.compiler import pressure
from perspex.runtime.dispatch import EVAL, MOST_PROGRAMS, fast_callable, op_by_op
from perspex.runtime.executable import Executable, compile_lowered
from perspex.runtime.lowered import Lowered
from perspex.runtime.lowered import Origin as Origin
from perspex.runtime.placement import Place, choose_place, settled
from perspex.runtime.transfer import signature
from perspex.tracing.staging import eval_jaxpr, stage
from perspex.tracing.trace import Reference, Tracer, leaked, state


class Program(NamedTuple):
    """A traced function: its jaxpr, and the tree of its results.

    `pure` is what is compiled of a program that reads or writes refs.
    """

    closed: ClosedJaxpr
    out_tree: Any
    pure: stateful.Pure | None = None

    @property
    def compiled(self) -> ClosedJaxpr:
        """The program that is compiled."""
        return self.closed if self.pure is None else self.pure.closed


_owners: weakref.WeakSet[Compiled] = weakref.WeakSet()
# Threads jit functions while one looks at all of them; collecting garbage may end in here again.
_owners_lock = threading.RLock()


def owners() -> list[Compiled]:
    """The Python sides of all jitted functions that are alive, those of Perspex among them."""
    with _owners_lock:
        return list(_owners)


@pressure.register
def _forget_all() -> None:
    for owner in owners():
        owner.clear()


class _Names(Sequence[str]):
    """The names of a call's arguments, worked out only if an error asks."""

    def __init__(self, owner: Compiled, in_tree: Any) -> None:
        self.owner, self.in_tree = owner, in_tree

    @property
    def fun(self) -> Any:
        return self.owner.fun

    def __getitem__(self, i: Any) -> Any:
        return f"`{self.owner.argument_names(self.in_tree)[i]}`"

    def __len__(self) -> int:
        return self.in_tree.num_leaves


def _is_traced(const: Any) -> bool:
    if isinstance(const, Reference):
        return const.staged is not None
    return isinstance(const, Tracer)


class Compiled:
    """The Python side of a jitted function: its programs and executables by signature."""

    def __init__(self, fun: Callable[..., Any], options: Options) -> None:
        # Weak, because `_known` maps the function to this object: the C++ callable keeps it alive.
        self.fun_ref: Callable[[], Any] = reference(fun)
        self.name = function_name(fun)
        self.options = options
        self.programs = Recent[Signature, Program](MOST_PROGRAMS)
        self.executables = Recent[Key, Executable](MOST_PROGRAMS)
        # Why executables were forgotten, by the hash of their keys.
        self.forgotten: dict[int, tuple[Difference, ...]] = {}
        self.log: misses.Log | None = None
        self.made_at = source.capture()
        # What the programs captured, if an observer watches that, and the fast calls to drop.
        self.watched = Recent[Signature, stale.Traced](MOST_PROGRAMS)
        self.callables: weakref.WeakSet[Any] = weakref.WeakSet()
        with _owners_lock:
            _owners.add(self)

    @property
    def fun(self) -> Callable[..., Any]:
        return self.fun_ref()

    # ---- taking a call apart ----------------------------------------------------------------

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        call = take_apart(self.fun, self.name, self.options, args, kwargs, self._not_an_array)
        wanted = self.in_shardings(call)
        if wanted is None:
            return call
        avals = [
            aval if s is None else aval.update(sharding=s)
            for aval, s in zip(call.signature.avals, wanted, strict=True)
        ]
        return call._replace(signature=call.signature._replace(avals=tuple(avals)))

    def argument_names(self, in_tree: Any) -> list[str]:
        """`x`, `params['w']`: what each array of a call is called in the function's text."""
        return argument_names(parameters_of(self.fun), in_tree)

    def _not_an_array(self, i: int, leaf: Any, in_tree: Any, error: TypeError) -> str:
        name = self.argument_names(in_tree)[i]
        if hasattr(type(leaf), "__jax_array__"):
            raise ValueError(
                f"`{name}` of the jitted function `{self.name}` is of type {type(leaf)}, whose "
                "__jax_array__ is not called for arguments: a program has to know their types. "
                f"Convert it: {self.name}(jnp.asarray({name}))."
            ) from error
        base = name.split("[")[0].split(".")[0]
        return (
            f"`{name}` of the jitted function `{self.name}` is of type {type(leaf)}: {error}.\n"
            f"If Python may depend on its value, mark it static: "
            f'jit({self.name}, static_argnames="{base}").'
        )

    # ---- the stages -------------------------------------------------------------------------

    def trace(self, call: Call) -> Program:
        """The program for a call, from memory or by tracing."""
        self.check_captures(call.signature)
        found = self.programs.get(call.signature)
        if found is not None:
            stale.use(self.watched.get(call.signature))
            return found
        if config.no_tracing.value:
            raise RuntimeError(
                f"`jit` would trace `{self.name}` for ({signature(call.signature.avals)}), but "
                "'no_tracing' is set; call it with these types before, or unset the flag"
            )
        start = time.perf_counter()
        out_tree, asked = None, self.options.out_shardings

        def flat(*args: Any) -> list[Any]:
            nonlocal out_tree
            leaves, out_tree = call.flat(*args)
            if asked is not None:
                results = tree.unflatten(out_tree, leaves)
                places = tree.unflatten(asked.structure, asked.leaves)
                leaves = constrained(leaves, broadcast_places(places, results, "out_shardings"))
            for i, leaf in enumerate(leaves):
                if not isinstance(leaf, Tracer):
                    self._check_result(leaf, i, out_tree)
            return leaves

        names = _Names(self, call.signature.in_tree)
        name = self.called(call.signature)
        with events.Phase("trace", name):
            with stale.Tracing() as tracing:
                jaxpr, consts = stage(flat, call.signature.avals, self.name, names)
            closed = ClosedJaxpr(jaxpr, consts)
            is_lasting = not any(_is_traced(c) for c in consts)
            program = Program(closed, out_tree, stateful.purified(closed) if is_lasting else None)
            if is_lasting:
                self.programs[call.signature] = program
                if stale.observers:
                    static = self._static(call.signature)
                    traced = tracing.remember(self.name, self.fun_ref, self, static)
                    if traced is not None:
                        self.watched[call.signature] = traced
                        stale.use(traced)
        if events.listeners:
            events.publish(
                "trace",
                name,
                start,
                signature(call.signature.avals),
                source.capture(),
                eqns=count_eqns(jaxpr),
                program=weakref.ref(program.closed),
            )
        return program

    def _static(self, call: Signature) -> list[tuple[str, Any]]:
        """The static arguments of a call by name."""
        if not call.static:
            return []
        parameters = parameters_of(self.fun)
        return [
            (where if isinstance(where, str) else position_name(parameters, where), value)
            for where, _, value in call.static
        ]

    def _check_result(self, leaf: Any, i: int, out_tree: Any) -> None:
        try:
            shaped(leaf)
        except TypeError:
            dummy = tree.unflatten(out_tree, list(range(out_tree.num_leaves)))
            path = tree.keystr(tree.flatten_with_path(dummy)[0][i][0])
            where = f"component {path} of the result" if path else "the result"
            raise TypeError(
                f"the jitted function `{self.name}` must return arrays, but {where} is of type "
                f"{type(leaf)}; return it from a function that is not jitted"
            ) from None

    def executable(
        self, call: Call, held: stateful.Held | None = None
    ) -> tuple[Executable, Any, stateful.Held | None]:
        """The executable for a call, the tree of its results, and the call with values of refs.

        Whether a function reads refs is known when it has been traced.
        """
        for leaf in call.leaves:
            if isinstance(leaf, Tracer):
                raise leaked(leaf)
        what = f"the jitted function `{self.name}`"
        wanted = self.in_shardings(call)
        place, committed = choose_place(call.leaves, what, self.options.device, wanted)
        key = (call.signature, place, committed)
        self.check_captures(call.signature)
        found = self.executables.get(key)
        miss = self._published(key, found is not None) if events.listeners else None
        start = time.perf_counter()
        program = self.trace(call)
        if program.pure is not None and held is None:
            held = self.hold(program, call)
            call = held.call
            place, committed = choose_place(call.leaves, what, self.options.device, wanted)
            key = (call.signature, place, committed)
            found = self.executables.get(key)
        if found is None:
            traced = time.perf_counter()
            lowered = self.lower(program, call, place, committed, watched=stopping.are_wanted())
            ready = time.perf_counter()
            found = compile_lowered(lowered, self.options.compiler_options)
            if miss is not None:
                stages = start, traced, ready
                misses.report(self, key, miss, lowered.number, stages, source.capture())
            self.executables[key] = found
        return found, program.out_tree, held

    def _published(self, key: Key, hit: bool) -> Miss | None:
        """Publish that a call was looked up; returns the reason of a miss, if anyone listens."""
        if not events.audience("cache") and (
            hit or not events.audience("recompile") or misses.is_ours(self.fun)
        ):
            return None
        start = time.perf_counter()
        miss = None if hit else misses.find(self, key)
        events.publish(
            "cache",
            self.name,
            start,
            signature(key[0].avals),
            source.capture(),
            hit=hit,
            cause="" if miss is None else miss.cause,
            differences=() if miss is None else miss.ways,
        )
        return miss

    def in_shardings(self, call: Call) -> list[Any] | None:
        """What `jit(in_shardings=)` asks for each array of a call, if it asks for anything."""
        asked = self.options.in_shardings
        if asked is None:
            return None
        places = tree.unflatten(asked.structure, asked.leaves)
        static = {where for where, *_ in call.signature.static}
        leaves = call.leaves[: call.signature.in_tree.num_leaves]
        given = tree.unflatten(call.signature.in_tree, leaves)[0]
        args = tuple([x for i, x in enumerate(given) if i not in static])
        found = broadcast_places(places, args, "in_shardings")
        # Arguments given by name have none.
        return found + [None] * (len(call.leaves) - len(found))

    def called(self, signature: Signature) -> str:
        """What the program for a call is called in messages and events."""
        return self.name

    def program_name(self, signature: Signature) -> str:
        """What its module is called, which is part of its key in the caches."""
        return self.name

    def lower(
        self,
        program: Program,
        call: Call,
        place: Place,
        committed: bool,
        platforms: Sequence[str] = (),
        watched: bool = False,
    ) -> Lowered:
        closed = program.compiled
        place, committed = settled(place, committed, closed.jaxpr, call.leaves)
        return Lowered(
            closed,
            self.called(call.signature),
            place,
            committed=committed,
            # With `debug_nans` the arguments may be needed a second time.
            donated=() if invalid.is_checking() else call.donated,
            keep_unused=self.options.keep_unused,
            is_ours=misses.is_ours(self.fun),
            origin=Origin(weakref.ref(self), weakref.ref(program.closed)),
            platforms=platforms,
            watched=watched,
            program_name=self.program_name(call.signature),
        )

    # ---- calling ----------------------------------------------------------------------------

    def miss(self, /, *args: Any, **kwargs: Any) -> Any:
        """What C++ asks for a call that it has not seen."""
        if state.trace is not EVAL:
            return self.staged(args, kwargs), None, False
        call = self.call(args, kwargs)
        held = self.held(call) if Reference.exist else None
        executable, out_tree, held = self.executable(held.call if held else call, held)
        if held is not None:
            call = held.call
        executable.out_tree = out_tree
        try:
            outs = executable(call.leaves)
        except invalid.InvalidValueError as error:
            raise self.origin(call, error) from None
        if held is not None:
            return tree.unflatten(out_tree, held.settle(outs)), None, False
        result = tree.unflatten(out_tree, outs)
        if executable.is_watched_for_keys and not executable.told:
            key_reuse.repeated(executable, self.come_to_python)
        # With `True` C++ asks again at the next call, where there is no fast path yet.
        return result, executable.fast_path(out_tree, result), executable.is_told

    def held(self, call: Call) -> stateful.Held | None:
        """The call with the values of its refs, if it is known to have some."""
        is_known = call.signature in self.programs
        if not (is_known or any([isinstance(leaf, Reference) for leaf in call.leaves])):
            return None
        program = self.trace(call)
        return None if program.pure is None else self.hold(program, call)

    def hold(self, program: Program, call: Call) -> stateful.Held:
        """The call with the values of the refs of its program."""
        assert program.pure is not None
        self.check_aliases(program, call)
        return stateful.hold(program.pure, call)

    def check_aliases(self, program: Program, call: Call) -> None:
        """Raise `ValueError` if the function could reach one ref in two ways."""
        names = _Names(self, call.signature.in_tree)
        stateful.check_aliases(self.name, program.closed, call.leaves, names)

    def origin(self, call: Call, error: FloatingPointError) -> Exception:
        """The error for an invalid result: that of the operation which made it, if one does."""
        closed = self.trace(call).compiled
        found = op_by_op(closed.jaxpr, closed.consts, call.leaves)
        return found or invalid.InvalidValueError(
            f"{error}: a result of the compiled function `{self.name}`. Run one by one, its "
            "operations give no such value: XLA rounds differently when it compiles them together."
        )

    def staged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as an equation of the current trace."""
        if config.disable_jit.value:
            return self.fun(*args, **kwargs)
        call = self.call(args, kwargs)
        program = self.trace(call)
        if Reference.exist:
            self.check_aliases(program, call)
        closed, consts = hoisted(program.closed)
        asked = self.in_shardings(call)
        leaves = call.leaves if asked is None else constrained(call.leaves, asked)
        if self.options.inline:
            outs = eval_jaxpr(closed.jaxpr, (), *consts, *leaves)
            return tree.unflatten(program.out_tree, outs)
        outs = jit_p(
            *consts,
            *leaves,
            jaxpr=closed,
            name=self.name,
            donated_invars=(False,) * len(consts) + (call.donated or (False,) * len(call.leaves)),
            inline=False,
            keep_unused=self.options.keep_unused,
        )
        return tree.unflatten(program.out_tree, outs)

    def clear(self, because: Sequence[Difference] = ()) -> None:
        """Forget all programs; a later miss gives `because` as its reason."""
        misses.forget(self, because)
        self.programs.clear()
        self.executables.clear()
        self.watched.clear()

    def take_place_of(self, earlier: Compiled, because: Sequence[Difference]) -> None:
        """Count this new function as another form of `earlier`; `because` says what differs.

        For code that makes a function again when its captures have changed, as magics do for cells.
        """
        if earlier.log is None:
            earlier.log = misses.Log([])
        self.log = earlier.log
        self.forgotten[0] = tuple(because)

    def keys_of(self, closed: ClosedJaxpr) -> list[Key]:
        """The keys of the executables that were made of a program."""
        signatures = [s for s, p in self.programs.entries() if p.closed is closed]
        return [key for key, _ in self.executables.entries() if key[0] in signatures]

    def evict(self, closed: ClosedJaxpr) -> None:
        """Forget the executables of a program; the traced program stays."""
        for key in self.keys_of(closed):
            self.forgotten[hash(key)] = (misses.cleared(self),)
            self.executables.pop(key, None)
        self.come_to_python()

    # ---- captures that have changed ---------------------------------------------------------

    def check_captures(self, key: Signature) -> None:
        """Forget the programs if captures of the one for `key` have changed and the policy says so.

        Warnings and errors: as the policies `warn` and `error` say.
        """
        traced = self.watched.get(key)
        if traced is not None and stale.must_retrace(traced):
            self.trace_again()

    def retrace(self) -> None:
        """Trace again from now on, and also the inner functions whose captures have changed."""
        self.trace_again([misses.cleared(self)])

    def trace_again(self, because: Sequence[Difference] = ()) -> None:
        """The same, for a reason beside these captures."""
        changes: dict[str, stale.Change] = {}
        for traced in list(self.watched.values()):
            changes.update({change.variable: change for change in traced.changes})
            stale.retrace_parts(traced)
        self.come_to_python()
        captured = [Difference("captured", c.variable, c.old, c.new) for c in changes.values()]
        self.clear([*captured, *because])

    @property
    def stale_policy(self) -> str | None:
        return self.options.stale

    def retrace_within(self) -> None:
        # A function with a policy of its own keeps to it.
        if self.options.stale is None:
            self.trace_again()

    def come_to_python(self) -> None:
        for fast in list(self.callables):
            xla.clear_cache(fast)


def reference(fun: Any) -> Callable[[], Any]:
    """What gives a function for as long as it lives; one that cannot be weakly held is kept."""
    try:
        hash(fun)
        if not isinstance(fun, types.MethodType):  # each access makes a new bound method
            return weakref.ref(fun)
    except TypeError:
        pass
    return lambda: fun


# Jitting one function twice gives one set of programs.
_known: weakref.WeakKeyDictionary[Any, dict[Options, Compiled]] = weakref.WeakKeyDictionary()


def compiled(fun: Callable[..., Any], options: Options) -> Compiled:
    """The `Compiled` of a function under some options, made once."""
    if not isinstance(reference(fun), weakref.ref):
        return Compiled(fun, options)
    by_options = _known.setdefault(fun, {})
    found = by_options.get(options)
    if found is None:
        found = by_options[options] = Compiled(fun, options)
    return found


def build(fun: Callable[..., Any], options: Options) -> tuple[Any, Compiled]:
    """The C++ callable for a function, and the Python side of it."""
    owner = compiled(fun, options)
    fast = fast_callable(
        owner.name, fun, owner.miss, options.static_argnums, options.static_argnames, key=options
    )
    owner.callables.add(fast)
    return fast, owner
