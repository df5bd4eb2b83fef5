"""The folder of compiled programs: altered entries never run, and some folders are refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.compiled import X, entries, filled, scale, sources
from support.compiled import folder as folder
from support.compiled import seen as seen

from perspex import config
from perspex.runtime.compiler import cache, disk, storage


def test_the_folder_is_private(folder: Path) -> None:
    path = filled(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600
    assert len((folder / "secret").read_bytes()) == 32


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def swap(path: Path) -> None:
    other = filled(path.parent, 17.0)
    path.write_bytes(other.read_bytes())


def be_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def be_a_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def new_secret(path: Path) -> None:
    (path.parent / "secret").write_bytes(b"s" * 32)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another format": lambda path: flip(path, 7),
    "another code": lambda path: flip(path, 20),
    "one bit": lambda path: flip(path, 400),
    "another program": swap,
    "a pipe": be_a_pipe,
    "a link": be_a_link,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_an_entry_that_was_altered_is_never_executed(how, seen, folder, monkeypatch) -> None:
    path = filled(folder)
    DAMAGE[how](path)
    tried = []
    monkeypatch.setattr(disk, "deserialize", lambda *args: tried.append(args))
    with pytest.warns(RuntimeWarning, match="removed a damaged entry") as warned:
        result = scale(3.0)(X)
    assert str(path) in str(warned[0].message) and warned[0].filename == __file__
    np.testing.assert_allclose(result, np.sin(X) * 3, rtol=1e-6)
    assert not tried and sources(seen)[-1] == "xla"
    monkeypatch.undo()
    # It has been replaced by a good one, and nothing is said a second time.
    assert disk.flush(30)
    cache.forget()
    np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert sources(seen)[-1] == "disk"


def test_an_entry_of_another_secret_is_not_found(seen, folder, monkeypatch) -> None:
    path = filled(folder)
    new_secret(path)
    disk._opened = None
    tried = []
    monkeypatch.setattr(disk, "deserialize", lambda *args: tried.append(args))
    np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert not tried and sources(seen)[-1] == "xla"


@pytest.mark.parametrize("secret", [b"", b"short"])
def test_a_bad_secret_is_replaced(secret, folder) -> None:
    filled(folder)
    (folder / "secret").write_bytes(secret)
    disk._opened = None
    filled(folder)
    assert len((folder / "secret").read_bytes()) == 32


def test_what_jaxlib_cannot_load_is_compiled(seen, folder, monkeypatch) -> None:
    path = filled(folder)
    with monkeypatch.context() as patch:

        def fail(*args):
            raise ValueError("unknown format")

        patch.setattr(disk, "deserialize", fail)
        with pytest.warns(RuntimeWarning, match="could not be loaded.*unknown format"):
            np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert sources(seen)[-1] == "xla" and disk.flush(30) and path.exists()


# ---- folders that are refused -------------------------------------------------------------------


def refused(path: object, seen: list, match: str) -> None:
    with config.compilation_cache_dir(path):
        with pytest.warns(RuntimeWarning, match=match):
            result = scale(4.0)(X)
        np.testing.assert_allclose(result, np.sin(X) * 4, rtol=1e-6)
        cache.forget()
        scale(4.0)(X)  # and is not told again
        assert disk.flush(30)
    assert sources(seen) == ["xla", "xla"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to(mode, seen, folder) -> None:
    folder.mkdir()
    folder.chmod(mode)
    refused(folder, seen, "other users can write to .*chmod go-w")
    assert not list(folder.iterdir())


def test_a_folder_of_somebody_else(seen, folder, monkeypatch) -> None:
    folder.mkdir(mode=0o700)
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    refused(folder, seen, f"belongs to another user .id {owner}.")
    assert not list(folder.iterdir())


def test_a_symbolic_link(seen, folder, tmp_path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "real")
    refused(folder, seen, "is a symbolic link")
    assert not list((tmp_path / "real").iterdir())


def test_a_file_in_the_way(seen, folder) -> None:
    folder.write_text("not a folder")
    refused(folder, seen, "cannot open")


def test_an_address(seen, folder) -> None:
    refused("gs://bucket/programs", seen, "gs://bucket/programs is not a folder of this machine")


def test_a_folder_that_can_only_be_read(seen, folder, monkeypatch) -> None:
    filled(folder)

    def fail(*args, **options):
        raise OSError(30, "Read-only file system")

    for name in ("utime", "replace", "unlink", "mkdir", "link"):
        monkeypatch.setattr(os, name, fail)
    disk._opened = None
    np.testing.assert_allclose(scale(3.0)(X), np.sin(X) * 3, rtol=1e-6)
    assert sources(seen)[-1] == "disk"


def test_a_full_disk(seen, folder, monkeypatch) -> None:
    filled(folder)

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.Folder, "_write_temporary", full)
    with pytest.warns(RuntimeWarning, match="cannot be written to .*No space left") as warned:
        scale(5.5)(X)
        assert disk.flush(30)  # it goes wrong behind, and is told of at the next chance
        scale(6.5)(X)
    assert len(warned) == 1
    assert len(entries(folder)) == 1


def test_a_folder_that_was_removed_is_made_again(folder) -> None:
    path = filled(folder)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    filled(folder)
    assert entries(folder) and folder.stat().st_mode & 0o777 == 0o700
    assert path not in entries(folder)  # the secret is a new one
