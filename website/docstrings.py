"""Docstrings of Perspex as Markdown: `Args`, `Returns` and `Raises` as lists, examples as code."""

from __future__ import annotations

import re

SECTIONS = {
    "Args": "Arguments",
    "Arguments": "Arguments",
    "Attributes": "Attributes",
    "Raises": "Raises",
    "Returns": "Returns",
    "Yields": "Yields",
}
_HEAD = re.compile(rf"^({'|'.join(SECTIONS)}):$")
_ITEM = re.compile(r"^ {2,4}(\**[\w.]+(?:, \**[\w.]+)*):(?: (.*))?$")
_SPAN = re.compile(r"(`+[^`]*`+)")


def summary(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    first = " ".join(text.strip().split("\n\n")[0].split())
    return _escaped(re.split(r"(?<=\.)\s+(?=[A-Z])", first)[0])


def markdown(text: str) -> str:
    """A docstring as Markdown."""
    blocks: list[str] = []
    section = ""
    for block in _blocks(text):
        lines = block.splitlines()
        head = _HEAD.match(lines[0])
        if head:
            section = SECTIONS[head[1]]
            blocks.append(f"**{section}**")
            lines = lines[1:]
            if not lines:
                continue
        elif not lines[0].startswith(" "):
            section = ""
        if lines[0].lstrip().startswith(">>>"):
            code = "\n".join(_dedented(lines))
            blocks.append(f"```pycon\n{code}\n```")
        elif section:
            blocks.append(_items(lines))
        elif lines[0].startswith("    "):
            blocks.append("```text\n" + "\n".join(_dedented(lines)) + "\n```")
        else:
            blocks.append(_prose(lines))
    return "\n\n".join(blocks)


def _blocks(text: str) -> list[str]:
    """Parts between empty lines; an example keeps the text right above it apart."""
    found: list[list[str]] = [[]]
    lines = text.expandtabs().strip("\n").splitlines()
    for number, line in enumerate(lines):
        begins = line.lstrip().startswith(">>>") and not (
            found[-1] and found[-1][0].lstrip().startswith(">>>")
        )
        if not line.strip() or begins or _HEAD.match(line):
            # Examples with an empty line between them are one.
            following = lines[number + 1] if number + 1 < len(lines) else ""
            is_more = found[-1] and found[-1][0].lstrip().startswith(">>>")
            if not line.strip() and is_more and following.lstrip().startswith(">>>"):
                found[-1].append("")
                continue
            found.append([])
        if line.strip():
            found[-1].append(line.rstrip())
    return ["\n".join(block) for block in found if block]


def _dedented(lines: list[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return [line[margin:] for line in lines]


def _items(lines: list[str]) -> str:
    """The entries of a section as a list of definitions; plain text stays text."""
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    found: list[list[str]] = []
    loose: list[str] = []
    for line in lines:
        item = _ITEM.match(line)
        if item and len(line) - len(line.lstrip()) == margin:
            found.append([item[1], item[2] or ""])
        elif found:
            found[-1].append(line.strip())
        else:
            loose.append(line.strip())
    parts = [_prose(loose)] if loose else []
    for name, *rest in found:
        says = _escaped(" ".join(rest).strip())
        names = ", ".join(f"`{one}`" for one in name.split(", "))
        parts.append(f"{names}\n:   {says or '...'}")
    return "\n\n".join(parts)


def _prose(lines: list[str]) -> str:
    shown = []
    for line in lines:
        bullet = re.match(r"^(\s*)(\*|-|\d+\.) ", line)
        if bullet and not shown or bullet:
            shown.append(bullet[0] + _escaped(line[len(bullet[0]) :]))
        else:
            shown.append(_escaped(line))
    text = "\n".join(shown)
    # A list needs an empty line before it.
    return re.sub(r"^([^\s*\d-].*)\n(\* )", r"\1\n\n\2", text, count=1, flags=re.MULTILINE)


def _escaped(text: str) -> str:
    """Text in which only what stands between backticks has a meaning for Markdown."""
    parts = _SPAN.split(text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", p) for p in parts)
