"""A prompt inside of a program that runs: what `debug.breakpoint` shows.

Its commands are those of Python's debugger, as far as they make sense where a program is over: the
frames are those of the functions that were traced, and their variables have the numbers of now.
"""

from __future__ import annotations

import cmd
import pprint
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

_one_at_a_time = threading.Lock()


class Frame(NamedTuple):
    """A function that was on its way: where it stood, and its variables.

    `line` counts from one; `first` is the line of the file with which `source` begins.
    """

    file: str
    line: int
    function: str
    source: tuple[str, ...]
    first: int
    names: dict[str, Any]


class Prompt(cmd.Cmd):
    """Reads commands and expressions until one lets the program go on."""

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(
        self, frames: Sequence[Frame], stdin: IO[str] | None = None, stdout: IO[str] | None = None
    ) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = 0
        self.has_read = False

    def ask(self) -> None:
        """Read commands until one says to go on.

        Raises:
          SystemExit: for `quit`.
          RuntimeError: if there is nobody to answer.
        """
        if self.use_rawinput and (sys.stdin is None or sys.stdin.closed):
            raise _nobody("it is closed")
        with _one_at_a_time:
            self.cmdloop()

    def precmd(self, line: str) -> str:
        if line == "EOF" and not self.has_read and self.use_rawinput:
            raise _nobody("it is empty")
        self.has_read = True
        return line

    def emptyline(self) -> bool:
        """Nothing, where Python's debugger repeats the last command."""
        return False

    def default(self, line: str) -> None:
        """Show the value of an expression."""
        self._show(line, repr)

    def _show(self, expression: str, shown: Any) -> None:
        try:
            value = eval(expression, dict(self.frames[self.at].names))  # noqa: S307 - a prompt
            text = shown(value)
        except Exception as error:
            text = "*** " + traceback.format_exception_only(error)[-1].strip()
        self._say(text)

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def _context(self, around: int) -> None:
        frame = self.frames[self.at]
        self._say(f"> {frame.file}({frame.line})")
        for number, line in enumerate(frame.source, frame.first):
            if abs(number - frame.line) <= around:
                self._say(("->  " if number == frame.line else "    ") + line)

    def _move(self, step: int, end: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
        else:
            self._say(f"At {end} frame.")
        self._context(2)

    def do_p(self, line: str) -> None:
        """p expression: show its value."""
        self._show(line, repr)

    def do_pp(self, line: str) -> None:
        """pp expression: show its value over several lines."""
        self._show(line, pprint.pformat)

    def do_up(self, line: str) -> None:
        """u(p): go to the function that called this one."""
        self._move(1, "topmost")

    def do_down(self, line: str) -> None:
        """d(own): go to the function that this one called."""
        self._move(-1, "bottommost")

    def do_list(self, line: str) -> None:
        """l(ist): show the source around here."""
        self._context(5)

    def do_where(self, line: str) -> None:
        """w(here), bt: show all functions, this one last."""
        self._say("Traceback:")
        for frame in reversed(self.frames):
            self._say(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
            at = frame.line - frame.first
            if 0 <= at < len(frame.source):
                self._say(f"    {frame.source[at].strip()}")

    def do_continue(self, line: str) -> bool:
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, line: str) -> None:
        """q(uit), exit: end the program."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit


def _nobody(why: str) -> RuntimeError:
    return RuntimeError(
        f"debug.breakpoint reads commands from the standard input, but {why}; run the program "
        "where somebody can answer, pass `stdin` and `stdout`, or show values with debug.print"
    )
