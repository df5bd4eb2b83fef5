"""The messages of errors about traced values.

A message says what happened to which value, where that value comes from, and what to do. If it is
certain which lines to write instead, it shows them (`suggest`); otherwise it gives general advice.
The functions below compose it from a description of the tracer (`float32[3]`) and its origin; the
exceptions of `perspex.errors` only carry it.
"""

from __future__ import annotations

import ast

from perspex.advice import suggest
from perspex.advice.leaks import stored_by
from perspex.advice.story import WAY, Card, Message, Remedy, Step, Story, recall, remedy_lines


def _compose(*parts: str) -> str:
    return "\n".join([part for part in parts if part])


def _tell(
    need: str,
    kind: str,
    headline: str,
    origin: str,
    why: str,
    general: str,
    own: bool = False,
    static: str = "",
) -> Message:
    """The message of an error about a traced value, and its card.

    If the user's line has a form with a remedy, that remedy replaces the `general` one. A remedy
    of the operation's `own` is kept beside it. `need` is what was needed, one of the constants of
    `suggest`. `static` is added where a `jit` may surround the line.
    """
    story = recall(origin)
    if static and (story is None or story.is_staged):
        general += static
    found, place = suggest.suggest(need, kind, story)
    if found is None:
        found = Remedy(general, otherwise=_without_arguments(story))
    elif own:
        found = suggest.beside(Remedy(general), found)
    sentences, steps, left_out = _parts(origin, story)
    card = Card(headline, sentences, why, found, place, steps, left_out)
    return Message(_compose(headline, origin, why, *remedy_lines(found)), card)


def _parts(origin: str, story: Story | None) -> tuple[str, tuple[Step, ...], int]:
    """The sentences of an origin, without the text of its steps; the steps themselves."""
    sentences = origin.partition(f"\n{WAY}")[0]
    return (sentences, (), 0) if story is None else (sentences, story.steps, story.left_out)


def _without_arguments(story: Story | None) -> str:
    if story is None or not story.is_constant:
        return ""
    return (
        "it depends on no argument: compute it outside of "
        f"`{story.function}`, or under `perspex.ensure_compile_time_eval()`"
    )


def bool_conversion(kind: str, origin: str = "") -> str:
    """The message of a `TracerBoolConversionError`.

    Args:
      kind: the tracer's type, as in `bool[]`.
      origin: sentences that say where its value comes from; may be empty.

    >>> print(bool_conversion("bool[]", "It is the argument `x` of the function `f`."))
    Attempted boolean conversion of traced array with shape bool[].
    It is the argument `x` of the function `f`.
    Python's `if`, `while`, `and`, `or`, `not` need its value, and while tracing there is none yet.
    Remedy: `jnp.where(c, a, b)` chooses elements; `lax.cond(c, f, g, x)` chooses what runs;
    `lax.while_loop` repeats; `&`, `|`, `~` combine. Or mark the argument with `static_argnames`.
    """
    return _tell(
        suggest.BOOL,
        kind,
        f"Attempted boolean conversion of traced array with shape {kind}.",
        origin,
        "Python's `if`, `while`, `and`, `or`, `not` need its value, "
        "and while tracing there is none yet.",
        "`jnp.where(c, a, b)` chooses elements; `lax.cond(c, f, g, x)` chooses what runs;\n"
        "`lax.while_loop` repeats; `&`, `|`, `~` combine.",
        static=" Or mark the argument with `static_argnames`.",
    )


_CASTS = {"int()": "int", "float()": "float", "complex()": "complex"}


def concretization(operation: str, kind: str, origin: str = "", remedy: str = "") -> str:
    """The message of a `ConcretizationTypeError`.

    Args:
      operation: what needed the value, as in `float()`, `.item()`, `the argument n of f`.
      kind: the tracer's type, as in `float32[]`.
      origin: sentences that say where its value comes from; may be empty.
      remedy: what to do instead; by default a conversion that can be traced, or a static argument.

    >>> concretization("float()", "float32[]").splitlines()[-1].partition(";")[0]
    'Remedy: `x.astype(float)` converts a traced array'
    """
    is_number = operation in _CASTS or operation in (".item()", "format()")
    own = bool(remedy)
    static = ""
    if not remedy:
        cast = _CASTS.get(operation)
        remedy = "return the array and read its value outside the traced function"
        if operation == "format()":
            remedy = (
                "`debug.print('{}', x)` prints when the value is there; or return the array and "
                "format it outside the traced function"
            )
        if cast:
            remedy = f"`x.astype({cast})` converts a traced array"
        static = "; or mark the argument with `static_argnames`"
    return _tell(
        suggest.NUMBER if is_number else suggest.SHAPE,
        kind,
        "Abstract tracer value encountered where concrete value is expected: "
        f"traced array with shape {kind}.",
        origin,
        f"{operation} needs its value, and while tracing there is none yet.",
        remedy,
        own,
        static,
    )


def integer_conversion(kind: str, origin: str = "") -> str:
    """The message of a `TracerIntegerConversionError`; arguments as for `bool_conversion`.

    >>> print(integer_conversion("int32[]").splitlines()[0])
    The __index__() method was called on traced array with shape int32[].
    """
    return _tell(
        suggest.INDEX,
        kind,
        f"The __index__() method was called on traced array with shape {kind}.",
        origin,
        "Python needs the number for an index, a length or a `range`; while tracing there is none.",
        "make the sequence an array, `jnp.array(items)[i]`; `lax.fori_loop(0, n, body, x)` "
        "instead of `range(n)`",
        static="; or mark the argument with `static_argnames`",
    )


def array_conversion(kind: str, origin: str = "") -> str:
    """The message of a `TracerArrayConversionError`; arguments as for `bool_conversion`.

    >>> print(array_conversion("int32[]").splitlines()[0])
    The numpy.ndarray conversion method __array__() was called on traced array with shape int32[].
    """
    return _tell(
        suggest.ARRAY,
        kind,
        "The numpy.ndarray conversion method __array__() was called on "
        f"traced array with shape {kind}.",
        origin,
        "NumPy needs the numbers, and while tracing there are none yet.",
        "call the function of the same name in `jnp` instead of NumPy's; for host code, "
        "`pure_callback`.",
    )


def boolean_index(kind: str, origin: str = "") -> str:
    """The message of a `NonConcreteBooleanIndexError`; `kind` is the mask's type.

    >>> print(boolean_index("bool[3]").splitlines()[0])
    Array boolean indices must be concrete; got bool[3].
    """
    return _tell(
        suggest.MASK,
        kind,
        f"Array boolean indices must be concrete; got {kind}.",
        origin,
        "How many elements the mask keeps is not known while tracing, so neither is the shape.",
        "`jnp.where(mask, x, 0)` keeps the shape; `jnp.nonzero(mask, size=n)` fixes the "
        "number; `x.at[...]` with `jnp.where` assigns.",
    )


def item_assignment(kind: str, statement: str = "") -> str:
    """The message for an assignment to an element of an array.

    Args:
      kind: the type of the array object, as in `ArrayImpl`.
      statement: the line that assigns, as in `x[0] += 1`; may be empty.

    >>> print(item_assignment("ArrayImpl", "x[0] += 1").splitlines()[-1])
    Here: `x = x.at[0].add(1)`
    """
    remedy = _updated(statement, is_traced=kind != "ArrayImpl")
    return _compose(
        f"{kind} object does not support item assignment: arrays are immutable. "
        "Instead of `x[idx] = y`, use `x = x.at[idx].set(y)`, which returns a new array.",
        f"Here: `{remedy}`" if remedy else "",
    )


_UPDATES = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}


def _updated(statement: str, is_traced: bool) -> str:
    """An assignment to an element, written as an update; empty for any other statement."""
    try:
        (node,) = ast.parse(statement).body
    except (SyntaxError, ValueError):
        return ""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, method = node.targets[0], "set"
    elif isinstance(node, ast.AugAssign):
        target, method = node.target, _UPDATES.get(type(node.op), "")
    else:
        return ""
    if not isinstance(target, ast.Subscript) or not method:
        return ""
    array = ast.unparse(target.value)
    number = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
    is_mask = is_traced and isinstance(target.slice, ast.Compare)
    if is_mask and isinstance(number, ast.Constant):
        # How many elements a mask picks is not known while tracing.
        value = node.value
        if isinstance(node, ast.AugAssign):
            value = ast.BinOp(target.value, node.op, node.value)
        chosen = ", ".join([ast.unparse(part) for part in (target.slice, value)])
        return f"{array} = jnp.where({chosen}, {array})"
    index = ast.unparse(target.slice)
    if isinstance(target.slice, ast.Tuple):
        index = index.removeprefix("(").removesuffix(")")
    return f"{array} = {array}.at[{index}].{method}({ast.unparse(node.value)})"


def leaked_tracer(kind: str, origin: str = "", used: str = "", name: str = "") -> str:
    """The message of an `UnexpectedTracerError`.

    Args:
      kind: the leaked tracer's type, as in `float32[]`.
      origin: sentences that say where its value comes from; may be empty.
      used: the place where it was used after its time, as in `train.py:7 (loss)`; may be empty.
      name: what it is called there, as in `kept[0]`; may be empty.

    >>> print(leaked_tracer("float32[]", used="train.py:7", name="kept[0]").splitlines()[1])
    It was used at train.py:7 as `kept[0]`, after the traced function had returned.
    """
    story = recall(origin)
    called = f" as `{name}`" if name else ""
    at = f"at {used}{called}, " if used else ""
    headline = f"Encountered an unexpected tracer: a traced array with shape {kind} has leaked."
    why = _compose(
        f"It was used {at}after the traced function had returned.",
        stored_by(name, story)
        or "It escaped through a side effect: a list, a global, an attribute, a closure.",
    )
    remedy = Remedy("return the value from the traced function and use what the call returns.")
    sentences, steps, left_out = _parts(origin, story)
    card = Card(headline, sentences, why, remedy, used, steps, left_out)
    return Message(_compose(headline, origin, why, *remedy_lines(remedy)), card)
