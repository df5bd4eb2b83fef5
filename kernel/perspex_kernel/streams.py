"""What cells print to."""

from __future__ import annotations

from typing import Any

from ipykernel.iostream import OutStream


class Stream(OutStream):
    """ipykernel's stream, which wakes no other thread to flush nothing.

    IPython flushes both streams twice for each cell and twice for each value shown. ipykernel waits
    for the thread that sends messages each time, nearly half a millisecond, also where nothing has
    been written.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._is_sending = False
        super().__init__(*args, **options)

    def flush(self) -> None:
        """Send what has been written so far."""
        # What is taken out of the buffers is being sent by then.
        if self._buffers or self._is_sending:
            super().flush()

    def _flush(self) -> None:
        self._is_sending = True
        try:
            super()._flush()
        finally:
            self._is_sending = False
