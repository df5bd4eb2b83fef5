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
        # What jax refuses, by its error, and Perspex accepts.
        self.accepted: Counter[tuple[tuple[str, str], ...]] = Counter()
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
        for raised, count in self.accepted.most_common():
            lines.append(f"{count:6} accepted: {'; '.join(': '.join(e) for e in raised)}")
        lines.append("by cause:")
        lines += [f"{n:6} {' | '.join(map(str, c))}" for c, n in self.causes.most_common()]
        return "\n".join(lines)
