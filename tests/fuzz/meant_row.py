"""`Meant`: a kind of difference that is as it should be."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fuzz.compare import Difference


@dataclass(frozen=True)
class Meant:
    """A kind of difference that is as it should be.

    `said` is found in the text of the difference, and `written` in the program. `instead` is a text
    for what `written` finds: with it the two libraries agree, or something else differs, too.
    """

    kind: str
    said: str
    written: str
    reason: str
    instead: str = ""

    def fits(self, difference: Difference, program: str) -> bool:
        """Whether it may be that difference of that program."""
        return (
            difference.kind == self.kind
            and re.search(self.said, difference.text) is not None
            and re.search(self.written, program) is not None
        )
