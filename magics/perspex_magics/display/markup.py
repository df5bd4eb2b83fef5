"""HTML without scripts, as outputs need it: one way to escape, and the styles that displays share.

An untrusted notebook loses scripts, style sheets and `<svg>`, so all styling is inline. Colours are
JupyterLab's variables, so dark and light themes both fit; elsewhere (VS Code, exported HTML) the
fallbacks are the surrounding text's own colour and greys that show on black and on white.
"""

from __future__ import annotations

import html
import unicodedata

MUTED = "color:var(--jp-ui-font-color2,#808080)"
MONO = "font-family:var(--jp-code-font-family,ui-monospace,monospace)"
LINE = "var(--jp-border-color2,rgba(128,128,128,0.35))"


def escape(text: object) -> str:
    """`text` as it may stand in HTML, between tags and inside a quoted attribute.

    Control characters and those that reorder what is written after them, which could make a name
    look like another, become visible escapes.

    >>> escape("<b onclick='x'>")
    '&lt;b onclick=&#x27;x&#x27;&gt;'
    >>> print(escape("a\\u202eb\\0"))
    a\\u202eb\\x00
    """
    return html.escape("".join(map(_visible, str(text))), quote=True)


def _visible(character: str) -> str:
    # Cc: control, Cf: format (joiners, direction), Cs: lone surrogates, which no encoder takes.
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs"):
        return character
    return character.encode("unicode_escape").decode("ascii")


def shortened(text: str, most: int = 120) -> str:
    """A text of at most `most` characters: a name may be as long as its author likes.

    >>> shortened("abcdefgh", 5)
    'abcd…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def coded(text: str) -> str:
    """`text` as markup, with what stands between backquotes as code.

    >>> coded("`a < b` holds")
    '<code>a &lt; b</code> holds'
    """
    parts = [escape(part) for part in text.split("`")]
    return "".join([tag("code", part) if i % 2 else part for i, part in enumerate(parts)])


def tag(name: str, *content: str, style: str = "", **attributes: str) -> str:
    """An element around `content`, which is markup already; attribute values are escaped here.

    >>> tag("td", escape("1 < 2"), style="color:red", scope="row")
    '<td style="color:red" scope="row">1 &lt; 2</td>'
    """
    given = {"style": style, **attributes} if style else attributes
    inside = "".join(f' {key}="{escape(value)}"' for key, value in given.items())
    return f"<{name}{inside}>{''.join(content)}</{name}>"
