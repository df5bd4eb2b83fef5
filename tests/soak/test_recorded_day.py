"""Five notebooks of twenty cells with usual mistakes: each problem is told once, and no other.

`day/*.txt` are the cells in the order in which they were run. What a cell should tell stands beside
its marker and was decided before anything was run: the kind of notice, and a word that it says. The
clock and the heartbeat are left out, because they say how long something takes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.session import open_session

NOTEBOOKS = sorted((Path(__file__).parent / "day").glob("*.txt"))
_MARKER = re.compile(r"# %%(?: raises (\w+))?(?: (?:and )?tells (.+))?")
_NOTICE = re.compile(r"application/vnd\.perspex\.(\w+)\+json")
_ABOUT_TIME = {"clock", "heartbeat"}


class Cell(NamedTuple):
    source: str
    error: str  # the class, or ""
    told: list[tuple[str, str]]  # kind of notice, and what it says


def cells_of(path: Path) -> list[Cell]:
    cells = []
    for part in re.split(r"(?m)^(?=# %%)", path.read_text())[1:]:
        marker, source = part.split("\n", 1)
        found = _MARKER.fullmatch(marker)
        assert found is not None, marker
        error, told = found.groups()
        pairs = [pair.split(": ", 1) for pair in told.split("; ")] if told else []
        cells.append(Cell(source, error or "", [(kind, says) for kind, says in pairs]))
    return cells


def notices(outputs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Kind and text of each notice that a cell showed."""
    found = []
    for message in outputs:
        if message["msg_type"] != "display_data":
            continue
        data = message["content"]["data"]
        for mime in data:
            kind = _NOTICE.fullmatch(mime)
            if kind and kind[1] not in _ABOUT_TIME:
                found.append((kind[1], data["text/plain"]))
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_problem_is_told_once(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # everything is compiled
    wrong = []
    with open_session() as session:
        for number, cell in enumerate(cells_of(path), 1):
            ran = session.run(cell.source)
            # What a card says as text goes on where the traceback ends.
            told = [
                (kind, ran.traceback + text if kind == "error" else text)
                for kind, text in notices(ran.outputs)
            ]
            if ran.ename and not told:
                told = [("error", ran.traceback)]
            if ran.ename != cell.error:
                wrong.append(f"{number}: {ran.ename or 'no error'}, not {cell.error or 'none'}")
            if [kind for kind, _ in told] != [kind for kind, _ in cell.told] or any(
                says not in text for (_, text), (_, says) in zip(told, cell.told, strict=True)
            ):
                wrong.append(f"{number}: {cell.told}, but it told {told}")
    assert not wrong, "\n".join(wrong)


def test_the_day_is_long_enough() -> None:
    assert len(NOTEBOOKS) == 5
    assert all(len(cells_of(path)) >= 20 for path in NOTEBOOKS)
