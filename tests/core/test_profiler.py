"""`jax.profiler`: marks reach the profile, files are written, errors say what to do."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import perspex.numpy as pnp
from perspex import profiler
from perspex.base import xla


def names(data: object) -> set[str]:
    return {e.name for p in data.planes for line in p.lines for e in line.events}  # type: ignore[attr-defined]


def test_marks_are_in_the_profile() -> None:
    @profiler.annotate_function
    def step(x: object) -> object:
        return pnp.sin(x)

    with profiler.trace() as session:
        with profiler.StepTraceAnnotation("train", step_num=3):
            step(pnp.ones(3)).block_until_ready()  # type: ignore[attr-defined]
        assert session.is_running and session.profile_data is None
    found = names(session.profile_data)
    assert "train" in found and any(name.endswith("step") for name in found)


def test_a_trace_writes_files(tmp_path: Path) -> None:
    profiler.start_trace(tmp_path, create_perfetto_trace=True)
    pnp.cos(np.ones(3)).block_until_ready()
    profiler.stop_trace()
    (folder,) = (tmp_path / "plugins" / "profile").iterdir()
    assert list(folder.glob("*.xplane.pb"))
    with gzip.open(folder / "perfetto_trace.json.gz") as file:
        content = json.load(file)
    assert content["traceEvents"] and "metadata" not in content


def test_numbers_are_exported_later(tmp_path: Path) -> None:
    with profiler.trace() as session:
        pass
    if xla.EXPORTS_PROFILES:
        profiler.export_profile_data(session, tmp_path, session_id="run")
        assert list((tmp_path / "plugins" / "profile" / "run").glob("*.xplane.pb"))
    else:
        with pytest.raises(RuntimeError, match="give log_dir"):
            profiler.export_profile_data(session, tmp_path)


def test_one_profile_at_a_time(tmp_path: Path) -> None:
    with profiler.trace(), pytest.raises(RuntimeError, match="already"):
        profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="start_trace"):
        profiler.stop_trace()


def test_the_memory_profile_is_a_compressed_buffer(tmp_path: Path) -> None:
    kept = pnp.ones(1000)
    path = tmp_path / "memory.prof"
    profiler.save_device_memory_profile(path)
    assert gzip.decompress(path.read_bytes())
    del kept


def test_one_server_at_a_time() -> None:
    profiler.start_server(0)
    with pytest.raises(ValueError, match="stop_server"):
        profiler.start_server(0)
    profiler.stop_server()
    with pytest.raises(ValueError, match="start_server"):
        profiler.stop_server()


def test_a_link_to_perfetto_waits_for_its_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(profiler, "_PERFETTO_PORT", port)
    content: list[bytes] = []

    def read() -> None:
        address = f"http://127.0.0.1:{port}/perfetto_trace.json.gz"
        for _ in range(500):
            with contextlib.suppress(OSError), urllib.request.urlopen(address) as file:
                content.append(file.read())
                return
            time.sleep(0.01)

    reader = threading.Thread(target=read)
    reader.start()
    with profiler.trace(tmp_path, create_perfetto_link=True):
        pass
    reader.join()
    assert gzip.decompress(content[0]).startswith(b"{")
    assert f"ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/" in capsys.readouterr().out
