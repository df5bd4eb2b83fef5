"""Differences that are as they should be: rows of `meant_types` and `meant_numbers`."""

from __future__ import annotations

import re

from fuzz.compare import Difference
from fuzz.meant_numbers import NUMBERS
from fuzz.meant_types import TYPES

MEANT = (*TYPES, *NUMBERS)


def meant(difference: Difference, program: str) -> tuple[str, str]:
    """The reason why a difference may be as it should be, and a program without that reason.

    The first is empty if it is not. The second is empty if there is no need to look.
    """
    found = [row for row in MEANT if row.fits(difference, program)]
    sure = next((row for row in found if not row.instead), None)
    if sure or not found:
        return (sure.reason if sure else ""), ""
    for row in found:
        program = re.sub(row.written, row.instead, program)
    return found[0].reason, program
