"""The files of a release are the same, byte for byte, wherever and whenever they are built."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from pathlib import Path

from support.repositories import ROOT, git, hatchling, needs_git

BUNDLES = ["labextension/dist", "magics/perspex_magics/widgets/static"]


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.iterdir() if path.suffix in (".whl", ".gz")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@needs_git
def test_a_commit_gives_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    """In another folder, time zone and language, with other times and rights of the files."""
    when = git(ROOT, "log", "-1", "--format=%ct")
    settings = [("here", "UTC", "C", 0o022), ("else/where", "Asia/Kathmandu", "C.UTF-8", 0o077)]
    made = []
    for name, zone, language, mask in settings:
        clone = tmp_path / name
        before = os.umask(mask)
        try:
            git(ROOT, "clone", "--quiet", ROOT.as_uri(), str(clone))
        finally:
            os.umask(before)
        for bundle in BUNDLES:
            if (ROOT / bundle).exists():
                shutil.copytree(ROOT / bundle, clone / bundle)
        if made:
            for path in clone.rglob("*.py"):
                os.utime(path, (1_000_000_000, 1_000_000_000))
        environment = {"TZ": zone, "LC_ALL": language, "SOURCE_DATE_EPOCH": when}
        hatchling(clone, "build", "-t", "sdist", "-t", "wheel", "-d", "out", **environment)
        made.append(clone / "out")
    assert len(digests(made[0])) == 2
    assert digests(made[0]) == digests(made[1])

    # And the archive gives the same wheel, as somebody builds it who has no repository.
    (sdist,) = made[0].glob("*.tar.gz")
    (wheel,) = made[0].glob("*.whl")
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    hatchling(source, "build", "-t", "wheel", "-d", "out", SOURCE_DATE_EPOCH=when)
    assert digests(source / "out")[wheel.name] == digests(made[0])[wheel.name]
