"""`perspex explain`: the page of an error or of a notice, in a terminal."""

from __future__ import annotations

import argparse
import sys

from perspex import errors
from perspex.advice import explain


def main(options: argparse.Namespace, others: list[str]) -> int:
    """Print the page that was named, or all names with what each page says first."""
    known = explain.pages(vars(errors))
    try:
        text = explain.found(options.name, known) if options.name else explain.listed(known)
    except LookupError as error:
        print(f"perspex explain: {error.args[0]}; `perspex explain` lists all", file=sys.stderr)
        return 2
    print(text, end="")
    return 0
