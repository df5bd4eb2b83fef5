"""Programs that read a file while they were traced go stale with what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shells import Told

pytestmark = pytest.mark.usefixtures("default_policy")

READS = {
    "read_text": "float(path.read_text())",
    "open": "read(path)",
    "loadtxt": "np.loadtxt(path)",
    "load": "np.load(path)",
}


@pytest.mark.parametrize("read", READS)
def test_a_file_that_changes(told: Told, tmp_path: Path, read: str) -> None:
    write = "np.save(path, {})" if read == "load" else "path.write_text('{}')"
    told.ok(f"import pathlib\npath = pathlib.Path({str(tmp_path)!r}, 'rate.npy')")
    told.ok("def read(path):\n    with open(path) as file:\n        return float(file.read())")
    told.ok(write.format(0.5))
    told.ok(f"@perspex.jit\ndef f(x):\n    return x * {READS[read]}\nassert f(2.0) == 1.0")
    assert not told.warnings
    # Written again as it was.
    told.ok(write.format(0.5))
    told.ok("assert f(2.0) == 1.0")
    assert not told.warnings
    told.ok(write.format(0.75))
    told.ok("assert f(2.0) == 1.0")
    (warning,) = told.warnings
    (change,) = warning.changes
    assert change.variable.endswith("rate.npy")
    assert change.old != change.new
    if read != "load":
        assert (change.old, change.new) == ("'0.5'", "'0.75'")
    told.ok("assert f(2.0) == 1.0")
    assert not told.warnings
    told.ok("f.retrace()\nassert f(2.0) == 1.5")
    told.ok("path.unlink()\n")
    told.ok("f(2.0)")
    assert [change.new for change in told.warnings[0].changes] == ["not there"]


def test_under_retrace_it_is_read_again(told: Told, tmp_path: Path) -> None:
    told.ok("perspex.config.update('stale_captures', 'retrace')")
    told.ok(f"import pathlib\npath = pathlib.Path({str(tmp_path)!r}, 'rate')")
    told.ok("path.write_text('0.5')")
    told.ok("@perspex.jit\ndef f(x):\n    return x * float(path.read_text())\nassert f(2.0) == 1.0")
    told.ok("path.write_text('0.75')")
    told.ok("assert f(2.0) == 1.5")


def test_what_is_written_is_not_read(told: Told, tmp_path: Path) -> None:
    told.ok(f"path = {str(tmp_path / 'log')!r}")
    told.ok(
        "@perspex.jit\ndef f(x):\n    with open(path, 'a') as file:\n"
        "        file.write('traced')\n    return x\nf(1.0)"
    )
    told.ok("with open(path, 'w') as file:\n    file.write('other')")
    told.ok("f(1.0)")
    assert not told.warnings
