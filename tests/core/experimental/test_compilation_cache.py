"""JAX's functions for the cache on disk, on Perspex's own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perspex import config
from perspex.experimental.compilation_cache import compilation_cache
from perspex.runtime.compiler import disk


def test_they_set_the_flag(tmp_path: Path) -> None:
    def check() -> None:
        before = config.compilation_cache_dir.value
        try:
            compilation_cache.set_cache_dir(tmp_path / "kept")
            assert config.compilation_cache_dir.value == str(tmp_path / "kept")
        finally:
            compilation_cache.set_cache_dir(before)
        assert config.compilation_cache_dir.value == before

    # In this thread the tests keep their programs: a value of its own, which covers that of all.
    with ThreadPoolExecutor(1) as other:
        other.submit(check).result()


def test_a_refused_folder_is_looked_at_again_after_a_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "problems", {})
    tmp_path.chmod(0o777)
    with config.compilation_cache_dir(str(tmp_path)):
        assert disk.policy() is None
        with pytest.warns(RuntimeWarning, match="compiled programs are not kept on disk"):
            disk.tell()
        tmp_path.chmod(0o700)
        assert disk.policy() is None
        compilation_cache.reset_cache()
        found = disk.policy()
        assert found is not None and found.folder.path == str(tmp_path)
    compilation_cache.reset_cache()
