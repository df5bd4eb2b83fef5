"""Source locations: the innermost line of the user, whatever stands between it and `capture`."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

from perspex.base import source

OURS = str(Path(source.__file__).parent / "imaginary.py")


def define(text: str, filename: str, **names: Any) -> dict[str, Any]:
    """Execute `text` as the content of a file of that name."""
    exec(compile(text, filename, "exec"), names)
    return names


@pytest.fixture
def wrap() -> Callable[..., Any]:
    """`wrap(f)` calls `f` through two frames of our own."""
    text = "def bind(f): return f()\ndef wrap(f): return bind(f)\n"
    return define(text, OURS)["wrap"]


def here(offset: int = 0) -> int:
    """The line of the caller, from CPython itself."""
    return sys._getframe(1).f_lineno + offset


def test_capture_names_the_caller() -> None:
    found, line = source.capture(), here()
    assert found is not None
    assert found.frame.file == __file__
    assert found.frame.line == line
    assert found.frame.function == "test_capture_names_the_caller"


def test_frames_of_ours_are_passed_over(wrap: Callable[..., Any]) -> None:
    capture_here = define("def f(): return capture()", OURS, capture=source.capture)["f"]
    for _ in range(2):  # cold and warm
        found, line = wrap(capture_here), here()
        assert (found.frame.file, found.frame.line) == (__file__, line)


def test_the_innermost_user_frame_counts(wrap: Callable[..., Any]) -> None:
    # As with tree.map: user, ours, a function of the user, ours.
    def inner() -> Any:
        return wrap(source.capture)

    found = wrap(inner)
    line = inner.__code__.co_firstlineno + 1
    assert found.frame.function.endswith("<locals>.inner")
    assert found.frame.line == line


@pytest.mark.parametrize("skip", [1, 2, 3])
def test_skipping_frames_that_are_known(skip: int) -> None:
    names = define(
        "def capture_at(): return capture(skip)\ndef op(): return capture_at()\n",
        OURS,
        capture=source.capture,
        skip=skip,
    )
    found, line = names["op"](), here()
    assert (found.frame.file, found.frame.line) == (__file__, line)


def test_columns_and_lines_of_an_expression_over_lines() -> None:
    text = "def f(capture):\n    x = 1\n    return (x +\n            g(capture()))\n"
    names = define(text, "/home/ada/model.py", g=lambda found: found)
    with pytest.raises(TypeError):
        names["f"](source.capture)
    seen = []
    names["g"] = lambda found: seen.append(found) or 0
    names["f"](source.capture)
    frame = seen[0].frame
    assert (frame.line, frame.end_line) == (4, 4)
    found = text.splitlines()[3][frame.column : frame.end_column]
    assert found == "capture()"


def test_captures_of_one_place_are_one_object() -> None:
    def f() -> Any:
        return source.capture()

    first, second, third = f(), f(), source.capture()
    assert first is second
    assert first is not third
    assert len({first, second, third}) == 2
    assert first.frame is second.frame


def test_no_frame_is_kept() -> None:
    class Big:
        pass

    def f() -> Any:
        big = Big()
        watch.append(weakref.ref(big))
        return source.capture()

    watch: list[Any] = []
    found = f()
    gc.collect()
    assert watch[0]() is None
    assert isinstance(found.code, CodeType)


def test_the_table_of_sources_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_MOST_CODES", 8)
    for i in range(40):
        found = define("found = capture()", f"/cell_{i}.py", capture=source.capture)["found"]
        assert found.frame.file == f"/cell_{i}.py"
    assert len(source._sources) <= 8


def test_a_stack_of_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_our_directories", ["/"])
    monkeypatch.setattr(source, "_ours", set())
    monkeypatch.setattr(source, "_sources", {})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(source.capture()))
    thread.start()
    thread.join()
    assert found == [None]
    assert source.summary(None) == "unknown location"
    assert source.resolve(None) is None


def test_numpy_is_not_the_user() -> None:
    text = "class Duck:\n    def sum(self, *args, **kw):\n        return capture()\n"
    duck = define(text, OURS, capture=source.capture)["Duck"]()
    found, line = np.sum(duck), here()
    assert (found.frame.file, found.frame.line) == (__file__, line)


def test_sources_pickle_with_their_place() -> None:
    found = source.capture()
    assert found is not None
    again = pickle.loads(pickle.dumps(found))
    assert again.frame == found.frame
    assert source.summary(again) == source.summary(found)


def test_summaries() -> None:
    text = "def f():\n    def inner():\n        return capture()\n    return inner()\n"
    names = define(
        text + "x = f()\ntop = capture()\n", "/home/ada/train.py", capture=source.capture
    )
    assert source.summary(names["x"]) == "train.py:3 (inner)"
    assert source.summary(names["top"]) == "train.py:6"
    assert repr(names["top"]) == "Source(train.py:6)"
    assert source.here() == f"{Path(__file__).name}:{here()} (test_summaries)"


@pytest.fixture
def cells() -> Iterator[None]:
    remove = source.register_cell_namer(
        lambda file: f"Cell In[{file[-4]}]" if file.startswith("/tmp/ipykernel") else None
    )
    yield
    remove()


@pytest.mark.usefixtures("cells")
def test_cells_have_names() -> None:
    text = "def f():\n    return capture()\nx = f()\n"
    names = define(text, "/tmp/ipykernel_1/3.py", capture=source.capture)
    assert source.summary(names["x"]) == "Cell In[3]:2 (f)"
    assert source.cell_name("/home/ada/train.py") is None


def test_cell_namers_can_be_removed() -> None:
    remove = source.register_cell_namer(lambda file: "a cell")
    assert source.cell_name("anything") == "a cell"
    remove()
    assert source.cell_name("anything") is None


def test_registering_a_directory_as_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_our_directories", list(source._our_directories))
    monkeypatch.setattr(source, "_ours", set(source._ours))
    text = "def f():\n    return capture()\n"
    f = define(text, str(tmp_path / "lib" / "x.py"), capture=source.capture)["f"]
    assert f().frame.file == str(tmp_path / "lib" / "x.py")
    source.register_internal(str(tmp_path / "lib"))
    found, line = f(), here()  # also where it was captured before
    assert (found.frame.file, found.frame.line) == (__file__, line)
    # A directory whose name begins alike is another one.
    assert not source.is_internal(str(tmp_path / "library" / "x.py"))


def test_generated_code_is_ours() -> None:
    assert source.is_internal("<perspex jit>")
    assert source.is_internal("<frozen runpy>")
    assert not source.is_internal("<ipython-input-1>")


def test_stacklevel_names_the_user_in_warnings(wrap: Callable[..., Any]) -> None:
    text = "import warnings\ndef f(): warnings.warn('slow', stacklevel=stacklevel())\n"
    names = define(text, OURS, stacklevel=source.stacklevel)
    with pytest.warns(UserWarning, match="slow") as seen:
        wrap(names["f"])
    assert (seen[0].filename, seen[0].lineno) == (__file__, here(-1))


def test_line_tables_are_unpacked_once_per_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_MOST_TABLES", 2)
    many = "def f(capture):\n    return [" + ", ".join(["capture()"] * 300) + "]\n"
    found = define(many, "/unrolled.py")["f"](source.capture)
    columns = [s.frame.column for s in found]
    assert columns == [12 + 11 * i for i in range(300)]
    for i in range(5):
        found = define("x = capture()", f"/other_{i}.py", capture=source.capture)["x"]
        assert found.frame.line == 1
    assert len(source._positions) <= 2


def deep(depth: int, f: Callable[[], Any]) -> Any:
    return f() if depth == 0 else deep(depth - 1, f)


def test_the_cost_does_not_grow_with_the_stack(wrap: Callable[..., Any]) -> None:
    # The budget is 0.3 us; 3 us here, for the worst of machines. A capture of the whole stack grows
    # with its depth; ours may not, so 400 frames more may not even double it.
    def clock() -> float:
        capture, n, best = source.capture, 2000, float("inf")
        for _ in range(7):
            start = time.perf_counter()
            for _ in range(n):
                capture()
            best = min(best, (time.perf_counter() - start) / n)
        return best

    shallow, far_down = deep(0, clock), deep(400, clock)
    assert shallow < 3e-6
    assert far_down < 2 * shallow + 2e-7
