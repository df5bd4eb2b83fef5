"""The options of our magics: parsed the same way, explained by `--help`, completed by Tab."""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import keyword
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from IPython.core.completer import CompletionContext
from IPython.core.error import UsageError

_MAGIC = re.compile(r"(%%)(\w+)\s|[^#]*?(?:^|[=\s])(%)(\w+)\s")
_OPTION = re.compile(r"--[A-Za-z][\w-]*(=|$)")
_OPENING, _CLOSING = "([{", ")]}"


class MagicParser(argparse.ArgumentParser):
    """The options of one cell magic, with `--help` among them.

    Errors become IPython's `UsageError`, which is shown without a traceback.
    """

    sign = "%%"

    def __init__(self, name: str, description: str, epilog: str = "", usage: str = "") -> None:
        super().__init__(
            prog=f"{self.sign}{name}",
            usage=usage.replace("%", "%%") or None,
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.magic = name
        self.add_argument("--help", action="store_true", help="print this help and run nothing")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}; `{self.prog} --help` lists the options")

    def parse(self, line: str) -> argparse.Namespace:
        """The options on the magic's line."""
        try:
            words = shlex.split(line)
        except ValueError as error:  # a quote that is not closed
            self.error(str(error))
        return self.parse_intermixed_args(words)

    def add_names(self, *flags: str, help: str, metavar: str = "NAME") -> None:
        """An option that takes names: `--static n,m`, `--static n m`, or given twice.

        Without flags it takes the words besides the options.
        """
        if flags:
            self.add_argument(
                *flags,
                nargs="+",
                action="extend",
                type=_names,
                default=[],
                help=help,
                metavar=metavar,
            )
        else:
            self.add_argument("names", nargs="*", type=_names, help=help, metavar=metavar)


class WordParser(MagicParser):
    """The options of a line magic that takes words, and no expression."""

    sign = "%"


class LineParser(MagicParser):
    """The options of a line magic that takes a Python expression, before or after them."""

    sign = "%"

    def parse(self, line: str) -> argparse.Namespace:
        """The options on the magic's line, and the text of its expression as `expression`."""
        words, expression = self.split_line(line)
        options = self.parse_args(words)
        options.expression = expression
        if not expression and not options.help:
            self.error("an expression is missing")
        return options

    def split_line(self, line: str) -> tuple[list[str], str]:
        """The words of the options, and the expression.

        >>> parser = LineParser("grad", "")
        >>> _ = parser.add_argument("--wrt")
        >>> parser.split_line("f(w, x) --wrt w, b")
        (['--wrt', 'w,b'], 'f(w, x)')
        """
        taking = {
            flag for action in self._actions if action.nargs != 0 for flag in action.option_strings
        }
        options: list[str] = []
        expression: list[str] = []
        takes = False
        for word in _words(line.rstrip().removesuffix(";")):
            if takes:
                options[-1:] = (
                    [options[-1] + word] if options[-1].endswith(",") else [options[-1], word]
                )
                takes = word.endswith(",")
            elif _OPTION.match(word):
                options.append(word)
                takes = word in taking
            else:
                expression.append(word)
        return options, " ".join(expression)


def _words(line: str) -> list[str]:
    """`line` split at spaces that are outside brackets and quotes."""
    words, word, depth, quote = [], "", 0, ""
    characters = iter(line)
    for c in characters:
        if c == "\\":
            word += c + next(characters, "")
            continue
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in _OPENING:
            depth += 1
        elif c in _CLOSING:
            depth -= 1
        elif c.isspace() and depth <= 0:
            words.append(word)
            word = ""
            continue
        word += c
    return [word for word in [*words, word] if word]


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise argparse.ArgumentTypeError(f"{name!r} is not a name")
    return names


def flat(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What `add_names` collected, each name once, in order.

    >>> flat([["n", "m"], ["n"]])
    ('n', 'm')
    """
    return tuple(dict.fromkeys(name for group in names for name in group))


def axes_by_name(text: str) -> dict[str, int | None]:
    """The type of an option like `--in x=0,y=None`.

    >>> axes_by_name("x=0,y=None")
    {'x': 0, 'y': None}
    """
    axes: dict[str, int | None] = {}
    for item in filter(None, text.split(",")):
        name, equals, axis = item.partition("=")
        if not equals or _names(name) != [name] or not re.fullmatch(r"-?\d+|None", axis):
            raise argparse.ArgumentTypeError(f"{item!r} is not NAME=AXIS, as in x=0 or y=None")
        axes[name] = None if axis == "None" else int(axis)
    return axes


def axes_literal(text: str) -> Any:
    """The type of an option like `--in 0,None`: what `vmap` takes, or axes by name.

    >>> axes_literal("0,None"), axes_literal("x=1")
    ((0, None), {'x': 1})
    """
    if "=" in text:
        return axes_by_name(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an axis, None, or several of them separated by commas"
        ) from None


# ---- Completion and help ------------------------------------------------------------------------


def on_magics_line(context: CompletionContext) -> tuple[tuple[str, str], str] | None:
    """The sign and name of the magic on whose line the cursor is, and what is typed behind it.

    Without the word at the cursor.
    """
    line = context.text_until_cursor
    found = _MAGIC.match(line)
    if not found:
        return None
    key = found[1] or found[3], found[2] or found[4]
    return key, line[found.end() :].removesuffix(context.token)


def candidates(
    parser: MagicParser, rest: str, context: CompletionContext, namespace: Mapping[str, Any]
) -> list[str]:
    """What may stand behind `rest` on a magic's line, whatever has been typed of it."""
    given, token = _words(rest), context.token
    actions = {flag: action for action in parser._actions for flag in action.option_strings}
    last = next((actions[word] for word in reversed(given) if word in actions), None)
    flags = sorted(flag for flag in actions if flag not in given)
    if token.startswith("-"):
        return flags
    if last is not None and last.choices is not None and given[-1] in actions:
        return sorted(map(str, last.choices))
    takes_one = bool(given) and (given[-1] in actions or given[-1].endswith(","))
    if isinstance(parser, LineParser):
        if last is not None and last.type is _names and takes_one:
            return _expression_names(parser.split_line(rest)[1], namespace)
        if token.isidentifier():
            # IPython completes what follows a dot here, but no names.
            return sorted(name for name in namespace if not name.startswith("_"))
        ended = given and rest.endswith(" ") and rest.count("(") == rest.count(")")
        return flags if ended and not token else []
    words = next((a.choices for a in parser._actions if not a.option_strings and a.choices), None)
    if words is not None:
        return [] if given else sorted(words)
    positional = any(not action.option_strings for action in parser._actions)
    if (last is not None and last.nargs == "+") or (positional and last is None):
        body = context.full_text.split("\n")[context.cursor_line + 1 :]
        found = set(re.findall(r"[^\W\d]\w*", "\n".join(body)))
        return sorted(name for name in found if not keyword.iskeyword(name))
    return flags


def _expression_names(expression: str, namespace: Mapping[str, Any]) -> list[str]:
    """The parameters of the function in `f` or `f(w, x)`, and the names in its arguments."""
    function, _, arguments = expression.partition("(")
    names = set(re.findall(r"[^\W\d]\w*", arguments))
    with contextlib.suppress(KeyError, TypeError, ValueError):
        names |= set(inspect.signature(namespace[function.strip()]).parameters)
    return sorted(name for name in names if not keyword.iskeyword(name))


def help_alone(parsers: Sequence[MagicParser]) -> Callable[[list[str]], list[str]]:
    """An input transformer that lets a cell of one line, `%%jit --help`, run.

    IPython refuses a cell magic without a body before the magic is asked.
    """
    names = "|".join(parser.magic for parser in parsers if parser.sign == "%%")
    alone = re.compile(rf"%%({names})\s.*--help\b.*")

    def add_body(lines: list[str]) -> list[str]:
        if len(lines) == 1 and lines[0][:2] == "%%" and alone.match(lines[0]):
            return [lines[0].rstrip("\n") + "\n", "\n"]
        return lines

    return add_body
