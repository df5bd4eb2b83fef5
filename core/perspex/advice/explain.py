"""A page for each error and each notice, which `%explain` and `perspex explain` show.

The page of an error of `perspex.errors` is its docstring. Any other page is a file of the folder
`pages`, named after the error's class or after the kind of the notice. The site's index of errors
is made of the same texts, so a page is written once, and can be read without a network.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from pathlib import Path

# Where the site is published. Empty: nowhere yet, and no page has an address.
SITE = ""
FOLDER = Path(__file__).with_name("pages")
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)*)([\w./-]+)\.md\)")


def written() -> dict[str, str]:
    """The pages that are files, as Markdown by their names."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}


def pages(errors: Mapping[str, object]) -> dict[str, str]:
    """The pages of all notices and of the errors in a module's namespace, as Markdown by name."""
    kinds = [v for v in errors.values() if isinstance(v, type) and issubclass(v, BaseException)]
    return {kind.__name__: of_class(kind) for kind in kinds} | written()


def of_class(kind: type[BaseException]) -> str:
    """The page of an error, as Markdown: what it is a kind of, and its docstring."""
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    return f"# `{kind.__name__}`\n\nA kind of {bases}.\n\n{_fenced(inspect.getdoc(kind) or '')}\n"


def _fenced(text: str) -> str:
    """A docstring with its examples as blocks of code."""
    blocks: list[str] = []
    for block in text.split("\n\n"):
        # An example may follow its text without an empty line.
        said, newline, example = block.partition("\n>>> ")
        if block.startswith(">>> ") or not newline:
            said, example = ("", block) if block.startswith(">>> ") else (block, "")
        else:
            example = f">>> {example}"
        blocks += [said] if said else []
        blocks += [f"```pycon\n{example}\n```"] if example else []
    return "\n\n".join(blocks)


def readable(page: str) -> str:
    """A page for a reader outside the site: its links lead to the site, or name a file."""

    def led(found: re.Match[str]) -> str:
        shown, up, path = found.groups()
        # The pages stand in `reference/errors/` of the site.
        folder = {2: "", 1: "reference/"}.get(up.count("../"), "reference/errors/")
        address = f"{SITE.rstrip('/')}/{folder}{path}.html"
        return f"[{shown}]({address})" if SITE else f"{shown} (docs/{folder}{path}.md)"

    return _LINK.sub(led, page)


def says(page: str) -> str:
    """The first sentence of a page."""
    paragraphs = [part for part in page.split("\n\n")[1:] if not part.startswith("A kind of ")]
    first = " ".join(paragraphs[0].split()) if paragraphs else ""
    return re.split(r"(?<=\.)\s+(?=[A-Z])", first)[0]


def address(name: str) -> str:
    """Where the site has the page `name`; empty while there is no site."""
    return f"{SITE.rstrip('/')}/reference/errors/{name}.html" if SITE else ""


def pointer(name: str) -> str:
    """The sentence with which an error or a notice points to its page."""
    more = f", and {address(name)}" if SITE else ""
    return f"`%explain {name}` says more{more}."


def listed(pages: Mapping[str, str]) -> str:
    """All pages with their first sentences: errors, then notices."""
    parts = []
    for title, is_error in (("Errors", True), ("Notices", False)):
        rows = [f"* `{n}`: {says(pages[n])}" for n in sorted(pages) if n[0].isupper() == is_error]
        parts.append(f"# {title}\n\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def found(name: str, pages: Mapping[str, str]) -> str:
    """The page `name`, for a reader outside the site.

    Args:
      name: of an error, also with its module, or the kind of a notice; capitals do not count.
      pages: all pages by their names.

    Raises:
      LookupError: if there is no such page; the message names those that are spelled alike.
    """
    wanted = name.strip("`").rpartition(".")[2].lower()
    for known, page in pages.items():
        if known.lower() == wanted:
            return readable(page)
    names = {known.lower(): known for known in pages}
    close = difflib.get_close_matches(wanted, names, n=2)
    alike = [known for low, known in names.items() if low in wanted or low in close]
    hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
    raise LookupError(f"there is no page `{name}`{hint}")
