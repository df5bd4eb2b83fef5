"""`%debug` begins in the user's code, and not in ours, which raised the error there."""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any

from perspex.base import source
from perspex_magics.session import Session


def debug_user_frames(session: Session) -> None:
    """Let the debugger begin at the last line of the user's; `down` leads on into ours."""
    drawn: Any = session.shell.InteractiveTB
    before = drawn.debugger_cls
    drawn.debugger_cls = beginning_at_users(before)
    # It was made already where the user has debugged before.
    drawn.pdb = None

    def undo() -> None:
        drawn.debugger_cls, drawn.pdb = before, None

    session.on_unload(undo)


def beginning_at_users(debugger: type[Any]) -> type[Any]:
    """A debugger that begins in the innermost frame that is not ours."""

    class UserDebugger(debugger):
        curindex: int

        def setup(self, f: FrameType | None, tb: TracebackType | None) -> None:
            super().setup(f, tb)
            if tb is None:
                return
            files = [frame.f_code.co_filename for frame, _ in self.stack[: self.curindex + 1]]
            users = [i for i, file in enumerate(files) if not source.is_internal(file)]
            if users and users[-1] != self.curindex:
                self.curindex = users[-1]
                self.curframe = self.stack[self.curindex][0]
                if "curframe_locals" in vars(self):
                    self.curframe_locals = self.curframe.f_locals

    return UserDebugger
