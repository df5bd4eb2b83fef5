"""What a run found: differences by their cause, each with a minimal program ready to be pasted."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.compare import Difference
from fuzz.programs import Program, Statement, notebook

ERRORS = ("we raise", "jax raises", "error type")
INNER = "an inner error of jax"
# The shape of ours, and more sizes behind it.
SIZES = r"[^\[]*\[(?:'aval', '\w+', \[)?"
LONGER = rf"got {SIZES}(\d[\d, ]*)\][\s\S]*want {SIZES}\1, \d"
# Differences that are meant: the kind, what the text of the difference has, and what the program
# has, with the reason.
MEANT = [
    ("jax raises", r"", r"", "Perspex accepts more"),
    ("we raise", r"has no derivative with respect to", r"", "a derivative that jax leaves out"),
    ("error type", r"has no derivative with respect to", r"", "one that jax misses later"),
    ("text", r"perspex\.|Tracer", r"", "names of ours in texts"),
    ("we raise", r"with more axes than the array", r"where=", "a mask that NumPy refuses, too"),
    ("we raise", r"reduce_\w+: axes .* are out of range", r"", "jax leaves that to the compiler"),
    ("we raise", r"jacfwd requires .* got bool", r"", "jax refuses it where numbers are known"),
    ("error type", r"want CustomVJPException", r"", "a private type, for values closed over"),
    ("error type", r"got Unexp[^\n]*closes over a value", r"\.(def\w+|custom_\w+)\(", INNER),
    ("error type", r"reduce: axes .* out of range[\s\S]*want IndexError", r"", INNER),
    ("error type", r"jacrev requires[\s\S]*want ValueError: Linearization", r"", INNER),
    (
        "NaN or infinity",
        r"want .*0\.0",
        r"spence\(",
        "right: its slope at 0 is infinite",
    ),
    ("error type", r"unexpected tracer[\s\S]*want AssertionError: \[", r"", INNER),
    ("shape", r"want .*\[(\d+, )*0[\],]", r"jnp\.take\(", "right: no indices give their shape"),
    ("error type", r"custom_jvp.* not implemented|'custom_lin' not", r"", INNER),
    ("error type", r"IndivisibleError", r"", "a private type, which is a ValueError"),
    ("NaN or infinity", r"want .*nan", r"special\.beta\(", "right: jax has no slope below 0"),
    ("structure", r"want python Typed", r"", "an integer that a function returns is an array"),
    ("shape", LONGER, r"lax\.all_to_all\(", "right: jax adds an axis if only the name is mapped"),
    ("we raise", r"reduce: axes .* are out of range", r"", "jax leaves that to the compiler"),
    # grad(lambda x: lax.reduce(x, 1.0, lax.max, (0,)))([0.0]) is 0, and 1 in jax.
    ("value", r"", r"lax\.reduce\(.*(maximum|lax\.m)", "right: the initial value counts, too"),
]


def meant(difference: Difference, program: str) -> str:
    """Why a difference is as it should be; the empty string if it is not."""
    for kind, said, written, reason in MEANT:
        if (
            difference.kind == kind
            and re.search(said, difference.text)
            and re.search(written, program)
        ):
            return reason
    return ""


def errors(difference: Difference) -> tuple[tuple[str, str], ...]:
    """The errors that a difference speaks of, without the numbers in them."""
    text = re.sub(r"[\d.\[\],()-]+", "#", difference.text)
    return tuple(re.findall(r"(?:got|want) (\w*(?:Error|Exception)\w*): ?(.{0,36})", text))


def cause(difference: Difference, text: str) -> tuple[object, ...]:
    """What differences of one cause have in common, as far as can be told before shrinking."""
    if difference.kind in ERRORS:
        return (difference.kind, *errors(difference))
    called = re.findall(r"(?:jax|jnp|lax)\.[a-z_.0-9]+\(|\.[a-z]+\(|\[", text.splitlines()[-1])
    return (difference.kind, *called[:1])


@dataclass
class Finding:
    """One difference with the smallest program that shows it."""

    program: Program
    difference: Difference
    minimal: Sequence[Statement]
    abstract: bool

    def text(self) -> str:
        """A cell that shows it under either library, with both answers as a comment."""
        said = "\n".join("# " + line for line in self.difference.text.splitlines())
        how = " (types only)" if self.abstract else ""
        case = oracle_case(self.minimal, self.difference.name)
        flag = " #@ enable_x64" if self.program.x64 else ""
        line = f"# tests/oracle: {case}{flag}\n" if case else ""
        return (
            f"# {self.difference.kind}: {self.difference.name} of seed {self.program.seed}{how}\n"
            f"{said}\n{line}{notebook(tuple(self.minimal), self.program.x64)}"
            f"print({self.difference.name})\n"
        )


def oracle_case(statements: Sequence[Statement], target: str) -> str:
    """The program as one expression for `tests/oracle/cases`; empty if it cannot be one."""
    values: dict[str, ast.expr] = {}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    for s in statements:
        for node in ast.parse(s.text).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values[node.targets[0].id] = Put().visit(node.value)
            elif isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
                if len(node.body) > 1 or node.body[0].value is None:  # type: ignore[attr-defined]
                    return ""
                names = {a.arg for a in node.args.args}
                if names & values.keys():
                    return ""
                values[node.name] = ast.Lambda(node.args, Put().visit(node.body[0].value))  # type: ignore[attr-defined]
            else:
                return ""
    if target not in values:
        return ""
    text = ast.unparse(ast.fix_missing_locations(values[target]))
    prelude = r"\b(total|scalar|tangent|forward|backward|linear|lanes)\("
    return "" if re.search(prelude, text) or len(text) > 300 else text


class Findings:
    """All differences of a run, counted by cause, the first of each kept with its program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.causes: Counter[tuple[object, ...]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.meant: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, finding: Finding) -> Path:
        """Write one down; returns the file."""
        kind = finding.difference.kind.replace(" ", "-")
        path = self.folder / f"{kind}-{finding.program.seed}-{finding.difference.name}.py"
        path.write_text(finding.text(), encoding="utf-8")
        return path

    def keep_broken(self, program: Program, words: str) -> Path:
        """Write down a program that ended or hung a process."""
        path = self.folder / f"broken-{program.seed}.py"
        said = "\n".join("# " + line for line in words.splitlines()[-30:])
        path.write_text(f"{said}\n{notebook(program.statements, program.x64)}", encoding="utf-8")
        return path

    def report(self) -> str:
        """The counts, as text."""
        lines = [f"{count:6} {kind}" for kind, count in sorted(self.kinds.items())]
        lines += [f"{count:6} {kind}" for kind, count in sorted(self.broken.items())]
        lines += [f"{count:6} meant: {why}" for why, count in sorted(self.meant.items())]
        lines.append("by cause:")
        lines += [f"{n:6} {' | '.join(map(str, c))}" for c, n in self.causes.most_common()]
        return "\n".join(lines)
