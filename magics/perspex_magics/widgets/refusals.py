"""What a widget says when it cannot do what somebody clicked."""

from __future__ import annotations


class Refused(Exception):
    """Something that cannot be done; the message is for the view, and says why."""
