"""The version of a release is its tag: `tests/soak/test_reproducible.py` has the rest."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from support.repositories import ROOT, git, hatchling, needs_git

# What decides about the version, and what the archive of a repository holds of it.
ABOUT = [
    "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitattributes",
    ".git_archival.txt", ".gitignore",
]  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with what decides about the version, and one commit."""
    folder = tmp_path / "small"
    folder.mkdir()
    for name in ABOUT:
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


@needs_git
def test_the_version_is_the_tag(small: Path) -> None:
    head = git(small, "rev-parse", "--short=9", "HEAD")
    assert hatchling(small, "version") == f"0.1.0.dev1+g{head}"
    git(small, "tag", "v1.2.3")
    assert hatchling(small, "version") == "1.2.3"
    git(small, "commit", "--quiet", "--allow-empty", "-m", "second")
    head = git(small, "rev-parse", "--short=9", "HEAD")
    assert hatchling(small, "version") == f"1.2.4.dev1+g{head}"


@needs_git
def test_a_shallow_clone_of_a_tag_has_its_version(small: Path) -> None:
    git(small, "commit", "--quiet", "--allow-empty", "-m", "second")
    git(small, "tag", "v1.2.3")
    clone = small.parent / "shallow"
    git(small, "clone", "--quiet", "--depth=1", "--branch=v1.2.3", small.as_uri(), str(clone))
    assert (clone / ".git/shallow").exists()
    assert hatchling(clone, "version") == "1.2.3"


@needs_git
def test_archives_know_their_version_without_git(small: Path) -> None:
    git(small, "tag", "v1.2.3")
    hatchling(small, "build", "-t", "sdist", "-d", str(small.parent / "out"))
    (sdist,) = (small.parent / "out").glob("*.tar.gz")
    zipped = small.parent / "archive.tar"
    git(small, "archive", "--prefix=archive/", "-o", str(zipped), "v1.2.3")
    for path in (sdist, zipped):
        with tarfile.open(path) as packed:
            packed.extractall(small.parent, filter="data")
    assert hatchling(small.parent / "perspex-1.2.3", "version") == "1.2.3"
    assert hatchling(small.parent / "archive", "version") == "1.2.3"


@needs_git
def test_an_archive_without_a_tag_is_in_development(small: Path) -> None:
    # As GitHub's "Download ZIP" of a branch: the name of a commit alone would make it version 0.0.
    zipped = small.parent / "archive.tar"
    git(small, "archive", "--prefix=archive/", "-o", str(zipped), "HEAD")
    with tarfile.open(zipped) as packed:
        packed.extractall(small.parent, filter="data")
    assert hatchling(small.parent / "archive", "version") == "0.1.0.dev0"


@needs_git
def test_a_folder_that_git_knows_nothing_of_is_in_development(small: Path) -> None:
    shutil.rmtree(small / ".git")
    assert hatchling(small, "version") == "0.1.0.dev0"
    told = hatchling(small, "version", SETUPTOOLS_SCM_PRETEND_VERSION="1.2.3")
    assert told == "1.2.3"  # as the Dockerfile says it


@needs_git
def test_the_page_of_the_package_has_whole_addresses(small: Path) -> None:
    base = "https://example.org/o/r/blob/v1/"
    hatchling(small, "build", "-t", "sdist", "-d", str(small.parent), PERSPEX_LINKS=base)
    (archive,) = small.parent.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(small.parent / "out", filter="data")
    (source,) = (small.parent / "out").iterdir()
    # What is built of the archive has its text, without being told the address again.
    page = json.loads(hatchling(source, "metadata"))["readme"]["text"]
    assert f"]({base}docs/story.gif?raw=true)" in page
    assert f"]({base}docs/howto/README.md)" in page
    targets = re.findall(r"\]\(([^)\s]+)\)", page)
    assert [target for target in targets if not target.startswith((base, "#"))] == []
    # In the repository itself, paths are paths.
    assert "](docs/story.gif)" in json.loads(hatchling(small, "metadata"))["readme"]["text"]
