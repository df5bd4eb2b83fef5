"""Looking at what loops carry while they run."""

from __future__ import annotations

from collections.abc import Callable

from perspex.runtime.resumable import LoopWatch, Moment


def watch_loops(
    report: Callable[[Moment], object] | None = None, *, every: float = 0.1
) -> LoopWatch:
    """Show what the loops of compiled programs carry while they run, and stop them without loss.

    In this context a call of a compiled program with a long `while_loop`, `fori_loop` or `scan` is
    made in turns: programs of about 40 ms, each of which goes on with what the last one returned.
    The loop stands in the function or in a jitted one that it calls, not in a branch or in another
    loop. The call returns when its results are there. They are those of the same operations, which
    XLA may fuse in another way before and after a loop.

    An interrupt ends such a call between two turns. `resume()` goes on with it.

    Args:
      report: a function that is called with a `Moment`: the turn that a loop is in, and what it
        carries. An error that it raises ends the call.
      every: seconds between two calls of `report`.

    Returns:
      A context manager. Its `moment` is the last one.

    Raises:
      Nothing.

    >>> import perspex
    >>> @perspex.jit
    ... def count(x):
    ...     return perspex.lax.while_loop(lambda c: c < 100.0, lambda c: c + 1, x)
    >>> with watch_loops() as loops:
    ...     y = count(0.0)
    >>> float(y), loops.moment.turn
    (100.0, 100)
    """
    return LoopWatch(report, every)
