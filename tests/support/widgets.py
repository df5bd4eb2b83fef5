"""Widgets as a page talks to them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from perspex_magics.widgets.view import View


def asked(widget: View, message: dict[str, Any]) -> dict[str, Any]:
    """The answer to a message, of which there must be one."""
    with patch.object(widget, "send") as send:
        widget._answer(widget, {"request": "r", **message}, [])
    send.assert_called_once()
    answer: dict[str, Any] = send.call_args.args[0]
    return answer
