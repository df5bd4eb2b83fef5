"""The answer of a widget that cannot do what somebody clicked."""

from __future__ import annotations


class Refused(Exception):
    """Something cannot be done; the view shows the message, which says why."""
