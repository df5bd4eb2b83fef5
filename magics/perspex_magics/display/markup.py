"""HTML without scripts, as outputs need it: one way to escape, and the styles that displays share.

An untrusted notebook loses scripts, style sheets and `<svg>`, so all styling is inline. Colours are
JupyterLab's variables, so dark and light themes both fit; elsewhere (VS Code, exported HTML) the
fallbacks are the surrounding text's own colour and greys that show on black and on white.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import markupsafe
from markupsafe import Markup

MUTED = "color:var(--jp-ui-font-color2,#808080)"
MONO = "font-family:var(--jp-code-font-family,ui-monospace,monospace)"
LINE = "var(--jp-border-color2,rgba(128,128,128,0.35))"

# The space between a number and what `display.units` writes behind it.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[um]?s|(?:[KMGTPE]i)?B)\b)")
# No name in a sentence is longer.
_LONGEST = 60


def escape(text: object) -> Markup:
    """`text` escaped for HTML, between tags and inside a quoted attribute.

    Control characters and those that reorder what is written after them, which could make a name
    look like another, become visible escapes. Markup stays as it is.

    >>> escape("<b onclick='x'>")
    Markup('&lt;b onclick=&#39;x&#39;&gt;')
    >>> print(escape("a\\u202eb\\0"))
    a\\u202eb\\x00
    """
    if isinstance(text, Markup):
        return text
    return markupsafe.escape("".join(map(_visible, str(text))))


def _visible(character: str) -> str:
    # Cc: control, Cf: format (joiners, direction), Cs: lone surrogates, which no encoder takes.
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs"):
        return character
    return character.encode("unicode_escape").decode("ascii")


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names in code for a sentence, at most `most` of them; nothing if there is none.

    >>> listed(["w", "b"]), listed(["a", "b", "c", "d", "e"])
    ('`w`, `b`', '`a`, `b`, `c` and 2 more')
    """
    shown = ", ".join([f"`{shortened(name, _LONGEST)}`" for name in names[:most]])
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def shortened(text: str, most: int = 120) -> str:
    """A text cut to at most `most` characters, because names can be arbitrarily long.

    >>> shortened("abcdefgh", 5)
    'abcd…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def coded(text: str, style: str = "") -> Markup:
    """`text` as markup, with what stands between backquotes as code.

    No line ends between a number and its unit.

    >>> coded("`a < b` took 2 s")
    Markup('<code>a &lt; b</code> took 2\\xa0s')
    """
    parts = enumerate(text.split("`"))
    return joined(
        [
            tag("code", part, style=style) if i % 2 else _BEFORE_UNIT.sub("\xa0", part)
            for i, part in parts
        ]
    )


def joined(parts: Iterable[str]) -> Markup:
    """Parts one behind the other; those that are no markup are escaped."""
    return Markup("").join(map(escape, parts))


def tag(name: str, *content: str, style: str = "", **attributes: str) -> Markup:
    """An element around `content`. Whatever is no markup is text, and is escaped.

    >>> tag("td", "1 < 2", tag("b", "!"), style="color:red", scope="row")
    Markup('<td style="color:red" scope="row">1 &lt; 2<b>!</b></td>')
    """
    given = {"style": style, **attributes} if style else attributes
    inside = "".join(f' {key}="{escape(value)}"' for key, value in given.items())
    return Markup(f"<{name}{inside}>{joined(content)}</{name}>")
