"""`%cache`: what it lists is what the events of compiling say, and `clear` empties both layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from support.shells import Notebook

from perspex import config
from perspex.runtime.compiler import cache, disk
from perspex_magics.compiling.compilations import Recorder
from perspex_magics.session import part

DEFINE = "@perspex.jit\ndef wave(x):\n    return jnp.sin(x) * {}\n"


@pytest.fixture
def cells(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """A notebook whose compiled programs are kept in a folder of its own."""
    for name, fresh in (("counts", disk.Counts()), ("problems", {})):
        monkeypatch.setattr(disk, name, fresh)
    monkeypatch.setattr(cache, "counts", cache.Counts())
    cache.forget()
    with config.compilation_cache_dir(tmp_path / "compiled"):
        notebook.ok("x = np.array([1.0, 2.0], np.float32)")
        yield notebook
        assert disk.flush(30)
    disk._opened = None


def shown(cells: Notebook, line: str) -> str:
    assert cells.ok(line) is None
    (bundle,) = cells.displayed
    assert "<script" not in bundle["text/html"]
    return str(bundle["text/plain"])


def rows(text: str) -> list[list[str]]:
    """The table's rows, split where two spaces or more are."""
    table = text.partition("\n\n")[2].splitlines()
    return [re.split(r"\s{2,}", line) for line in table]


def seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def test_where_a_program_came_from(cells: Notebook, tmp_path: Path) -> None:
    cells.ok(DEFINE.format(2.5) + "wave(x)")
    cells.ok("\n\n" + DEFINE.format(2.5) + "wave(x)")
    assert disk.flush(30)
    cache.forget()
    cells.ok(DEFINE.format(2.5) + "y = wave(x)")
    np.testing.assert_allclose(cells.ns["y"], np.sin([1, 2]) * 2.5, rtol=1e-6)
    text = shown(cells, "%cache")
    head, *found = rows(text)
    assert head == ["function", "types", "from", "trace", "lower", "compile", "XLA took", "size"]
    assert [row[:3] for row in found] == [
        ["wave", "f32[2]", where] for where in ("xla", "memory", "disk")
    ]
    for _, _, where, *times, size in found:
        trace, lower, compile, by_xla = map(seconds, times)
        assert min(trace, lower, compile) >= 0 and size.endswith("KiB")
        assert compile >= by_xla or where != "xla"
    # Each row gives the time that XLA took, wherever the program came from.
    assert len({row[-2] for row in found}) == 1
    assert "memory: 1 hit, 2 misses; 1 program kept." in text
    assert "disk: 1 hit, 1 miss; 1 program written by this session." in text
    assert f"{tmp_path / 'compiled'}: 1 program" in text


def test_one_function(cells: Notebook) -> None:
    cells.ok(DEFINE.format(3.5) + "wave(x)\nwave(x[:1])\nalias = wave\nother = perspex.jit(abs)(x)")
    text = shown(cells, "%cache alias")
    assert text.startswith("`alias` needed a program 2 times:") and "abs" not in text
    assert re.search(r"1\. \(f32\[2\]\), Cell In\[\d+\]:4: traced in [\d.]+ [mu]s", text)
    assert re.search(r"2\. \(f32\[1\]\), Cell In\[\d+\]:5: .*compiled by XLA in [\d.]+ [mu]s", text)


def test_a_function_that_calls_python(cells: Notebook) -> None:
    cells.ok("@perspex.jit\ndef talk(x):\n    perspex.debug.print('{}', x)\n    return x\ntalk(x)")
    assert "not cached, because it calls Python functions" in shown(cells, "%cache talk")
    assert "not cached, because they call Python functions: 1 program." in shown(cells, "%cache")


def test_clear(cells: Notebook, tmp_path: Path) -> None:
    cells.ok(DEFINE.format(4.5) + "wave(x)")
    assert shown(cells, "%cache clear") == "Removed 1 program from memory."
    assert rows(shown(cells, "%cache")) == []
    cells.ok("y = wave(x)")
    assert rows(shown(cells, "%cache"))[1][2] == "disk"
    text = shown(cells, "%cache clear --disk")
    assert f"Removed 1 program from {tmp_path / 'compiled'}." in text
    assert not list((tmp_path / "compiled").glob("*.xla"))
    cells.ok("y = wave(x)")
    assert rows(shown(cells, "%cache"))[1][2] == "xla"


def test_clear_forgets_what_is_pinned(cells: Notebook) -> None:
    cells.ok(DEFINE.format(5.5) + "wave(x)")
    recorder = part(cells.shell, Recorder)
    key = bytes.fromhex(recorder.named(["wave"])[-1].key)
    assert cache.pin(key)
    cells.ok("perspex.clear_caches()")
    assert cache.is_remembered(key)
    cells.ok("%cache clear")
    assert not cache.is_remembered(key) and not cache.is_pinned(key)


def test_only_the_longest_unless_all(cells: Notebook) -> None:
    cells.ok("for n in range(1, 34):\n    perspex.jit(lambda x: x + 1)(np.ones(n))")
    assert len(rows(shown(cells, "%cache"))) == 31
    assert "The 30 of 33 programs" in shown(cells, "%cache")
    assert len(rows(shown(cells, "%cache --all"))) == 34


def test_without_a_folder(cells: Notebook, tmp_path: Path) -> None:
    with config.compilation_cache_dir(None):
        assert "disk: off. Set the flag `compilation_cache_dir`" in shown(cells, "%cache")
        cells.fails("%cache clear --disk", UsageError, "no folder to clear")
    with config.enable_compilation_cache(False):
        assert "because the flag `enable_compilation_cache` is off" in shown(cells, "%cache")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with config.compilation_cache_dir(tmp_path / "open"):
        with pytest.warns(RuntimeWarning, match="other users can write"):
            cells.ok(DEFINE.format(5.5) + "wave(x)")
        assert "problem: compiled programs are not kept on disk" in shown(cells, "%cache")


def test_hostile_names(cells: Notebook) -> None:
    cells.ok("f = lambda x: x + 1\nf.__name__ = '<b onclick=1>'\nperspex.jit(f)(x)")
    cells.ok("%cache")
    html = cells.displayed[0]["text/html"]
    assert "<b" not in html and "&lt;b onclick=1&gt;" in html


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("%cache nothing", "no program of `nothing` has been compiled"),
        ("%cache a b", "unrecognized arguments: b"),
        ("%cache wave --disk", "--disk is an option of `%cache clear`"),
        ("%cache wave --all", "--all takes no name"),
        ("%cache --no", "unrecognized arguments"),
        ("%cache 'x", "No closing quotation"),
    ],
)
def test_usage(line: str, match: str, cells: Notebook) -> None:
    cells.fails(line, UsageError, match)


def test_help(cells: Notebook) -> None:
    cells.ok("%cache --help")
    assert cells.out.startswith("usage: %cache [--all] [--help] [NAME | clear [--disk]]")
    assert not cells.displayed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%cache ", {"clear", "wave", "--all", "--help"}),
        ("%cache wa", {"wave"}),
        ("%cache clear -", {"--disk"}),
    ],
)
def test_completion(text: str, words: set[str], cells: Notebook) -> None:
    cells.ok(DEFINE.format(6.5) + "wave(x)")
    with provisionalcompleter():
        found = {match.text for match in cells.shell.Completer.completions(text, len(text))}
    assert found == words


def test_unload(cells: Notebook) -> None:
    cells.ok("%unload_ext perspex_magics")
    assert "cache" not in cells.shell.magics_manager.magics["line"]
