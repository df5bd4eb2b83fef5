"""What the equations for functions with rules of their own have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from perspex.ir.avals import ShapedArray
from perspex.ir.jaxpr import ClosedJaxpr, JaxprEqn
from perspex.ops.structural import is_linear
from perspex.tracing.staging import eval_jaxpr
from perspex.tracing.trace import state
from perspex.transforms import discharge
from perspex.transforms.dce import dce_closed
from perspex.transforms.higher_order import HigherOrder, check_operands, instantiated
from perspex.transforms.linearize import Rest
from perspex.transforms.programs import cut, merge, partition, pick, with_gaps
from perspex.transforms.transpose import transpose_jaxpr


class WholeCall(HigherOrder):
    """A call of the program in the param `program`, with the operands as they are.

    The call stays whole until something transforms it. Another param says how: a rule of the user.
    Lowered, the call is its program written out.
    """

    program: ClassVar[str]
    has_rule_of_its_own = True

    def alternatives(self, params: dict[str, Any]) -> Sequence[ClosedJaxpr]:
        return (params[self.program],)

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        if discharge.is_example(operands):
            found: list[Any] = state.trace.bind(self, tuple(operands), params)
            return found
        closed, given = self.called(operands, params)
        return eval_jaxpr(closed.jaxpr, (), *given)

    def called(
        self, operands: Sequence[Any], params: dict[str, Any]
    ) -> tuple[ClosedJaxpr, Sequence[Any]]:
        return params[self.program], operands

    def type(self, *avals: Any, **params: Any) -> tuple[ShapedArray, ...]:
        closed, given = self.called(avals, params)
        of = f" of {params['name']}" if "name" in params else ""
        check_operands(self.name + of, given, closed.in_avals)
        return tuple(closed.out_avals)

    def lower(self, b: Any, *values: Any, **params: Any) -> list[Any]:
        closed, given = self.called(values, params)
        # A rule may have left derivatives that nothing reads and that cannot be evaluated.
        needed, _ = dce_closed(closed, (True,) * len(closed.out_avals), (True,) * len(given))
        inlined: list[Any] = b.inline(needed.jaxpr, given)
        return inlined

    def split(
        self, unknown: Sequence[bool], *operands: Any, **params: Any
    ) -> tuple[list[Any], Rest | None]:
        # A rule gives all results at once: the equation waits for the last of its operands.
        return [None] * len(params[self.program].out_avals), Rest(self, operands, params)


class LinearInRest(HigherOrder):
    """An equation that is linear in all but its first `num_res` operands, the residuals."""

    def discharge(
        self, operands: Sequence[Any], refs: tuple[bool, ...], params: dict[str, Any]
    ) -> list[Any]:
        # Its rule, which is called when it is transposed, gets the refs themselves.
        found: list[Any] = state.trace.bind(self, tuple(operands), params)
        return found

    def of_residuals(self, params: dict[str, Any]) -> Exception:
        """The error for a derivative with respect to residuals."""
        raise NotImplementedError

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        count = params["num_res"]
        if any(t is not None for t in tangents[:count]):
            raise self.of_residuals(params)
        residuals, given = cut(primals, count)
        ts = instantiated(tangents[count:], given, [True] * len(given))
        return self(*primals, **params), self(*residuals, *ts, **params)

    def dce(self, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
        # The transpose takes cotangents of all results: zero for those that nothing reads.
        return eqn


def transposed_call(closed: ClosedJaxpr, cts: Any, operands: Sequence[Any]) -> list[Any]:
    """The cotangents of the operands of a call in which it is linear."""
    linear = tuple([is_linear(x) for x in operands])
    nonzero = tuple([ct is not None for ct in cts])
    body, found = transpose_jaxpr(closed, linear, nonzero)
    given = [*partition(operands, linear)[0], *pick(cts, nonzero)]
    outs = eval_jaxpr(body.jaxpr, (), *given)
    return merge(linear, [None] * linear.count(False), with_gaps(outs, found))


def plain_call(closed: ClosedJaxpr, name: str, inline: bool) -> dict[str, Any]:
    """The params of a call by `jit` that has no rule."""
    return {
        "jaxpr": closed,
        "name": name,
        "donated_invars": (False,) * len(closed.in_avals),
        "inline": inline,
        "keep_unused": False,
    }
