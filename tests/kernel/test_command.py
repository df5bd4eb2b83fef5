"""The command `perspex`: light, plain in its errors, and right about what it looks at."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from support import kept

from perspex_command import arguments, doctor, examples, lab


def perspex(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perspex_command", *words]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]


def notebook(folder: Path, *cells: str) -> Path:
    path = folder / "small.ipynb"
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, path)
    return path


def test_it_imports_nothing_until_it_must() -> None:
    program = (
        "import sys; from perspex_command import main; status = main(['--version']);"
        "heavy = {'numpy', 'jaxlib', 'IPython', 'jupyter_client', 'perspex'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"perspex {arguments.version()}", "[]"]


def test_without_a_command_it_lists_them() -> None:
    done = perspex()
    assert done.returncode == 2
    assert {"lab", "demo", "run", "report", "doctor"} <= set(done.stdout.split())


@pytest.mark.parametrize("words", [["run", "none.ipynb"], ["report", "none.ipynb"]])
def test_a_file_that_is_not_there_is_named(words: list[str], tmp_path: Path) -> None:
    done = perspex(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"perspex {words[0]}: there is no file none.ipynb\n"


def test_an_unknown_argument_is_named() -> None:
    done = perspex("doctor", "--jsn")
    assert done.returncode == 2 and "unknown argument --jsn" in done.stderr


def test_a_missing_package_comes_with_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.startswith("perspex_command.lab")]:
        del sys.modules[name]
    sys.modules["jupyterlab"] = None  # type: ignore[assignment]
    try:
        assert arguments.main(["lab", "somewhere"]) == 1
    finally:
        del sys.modules["jupyterlab"]
    told = capsys.readouterr().err
    assert "`jupyterlab` is not installed" in told and "pip install 'perspex[lab]'" in told


def test_run_says_what_each_cell_took(tmp_path: Path) -> None:
    path = notebook(tmp_path, "x = 1", "1 / 0", "x = 2")
    done = perspex("run", str(path), env=_environment())
    assert done.returncode == 1
    assert "FAILED  1 / 0" in done.stdout and "x = 2" not in done.stdout
    assert "ZeroDivisionError" in done.stderr


def test_a_report_needs_no_scripts_and_has_what_was_recorded(tmp_path: Path) -> None:
    cells = [
        "import perspex, perspex.numpy as jnp\nfrom perspex import random\nkey = random.key(3)",
        "%%jit --name unusual\nshown = jnp.arange(6.0).reshape(2, 3) * 7",
        "a, b = random.normal(key, (2,)), random.uniform(key, (2,))",
        "'<img src=x>'",
    ]
    path = notebook(tmp_path, *cells)
    done = perspex("report", str(path), "--to", "out", cwd=tmp_path, env=_environment())
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    for text in ("unusual", "shown", "random.normal(key", "more than once", "Compiled programs"):
        assert text in page, text
    assert "<script" not in page and "<img src=x>" not in page and "http" not in page
    assert (tmp_path / "out" / "notebook.html").exists()


def test_a_report_of_a_notebook_that_fails_has_what_came_before(tmp_path: Path) -> None:
    path = notebook(tmp_path, "before = 1", "1 / 0")
    done = perspex("report", str(path), env=_environment())
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    page = (tmp_path / "small-report" / "index.html").read_text(encoding="utf-8")
    assert "before = 1" in page and "A cell failed" in page


def _environment() -> dict[str, str]:
    return {**os.environ, **kept.environment()}


def test_lab_opens_copies(tmp_path: Path) -> None:
    place = tmp_path / "copies"
    lab.copy(place)
    assert (place / "quickstart.ipynb").read_bytes() == (
        examples.folder() / "quickstart.ipynb"
    ).read_bytes()
    words = lab.arguments(place, ["--port=9999"])
    assert words[1:3] == ["-m", "jupyterlab"] and words[-1] == "--port=9999"
    assert f"--ServerApp.root_dir={place}" in words
    # `make lab` is this command, too.
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text(encoding="utf-8")
    assert "\n\t$(BIN)/perspex lab examples $(ARGS)\n" in makefile


def test_lab_asks_nobody_about_news(tmp_path: Path) -> None:
    """JupyterLab asks where this setting is `none`, whatever else it was told about news."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--no-browser", f"--port={port}", "--ServerApp.ip=127.0.0.1"]
    command = [sys.executable, "-m", "perspex_command", "lab", str(tmp_path), *options]
    settings = (
        f"http://127.0.0.1:{port}/lab/api/settings/@jupyterlab/apputils-extension:notification"
    )
    environment = {**_environment(), "HOME": str(tmp_path), "JUPYTER_CONFIG_PATH": str(tmp_path)}
    with subprocess.Popen(
        [*command, "--IdentityProvider.token="], env=environment, stderr=subprocess.DEVNULL
    ) as server:
        told = None
        while told is None:
            assert server.poll() is None, "JupyterLab has ended"
            with contextlib.suppress(ConnectionError, urllib.error.URLError):
                told = json.loads(urllib.request.urlopen(settings).read())
            time.sleep(0.1)
        server.terminate()
    assert told["schema"]["properties"]["fetchNews"]["default"] == "false"


def test_lab_adds_its_settings_to_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/etc/ours")
    ours, *others = lab.settings().split(os.pathsep)
    assert (Path(ours) / "labconfig/default_setting_overrides.json").is_file()
    assert others == ["/etc/ours"]
    monkeypatch.delenv("JUPYTER_CONFIG_PATH")
    assert lab.settings() == ours


# ---- the doctor ---------------------------------------------------------------------------------


def test_the_doctor_finds_nothing_wrong_here() -> None:
    done = perspex("doctor", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert {"Python", "perspex", "jaxlib", "devices", "cache", "kernel", "panel"} <= {
        finding["about"] for finding in found
    }


def test_what_a_check_raises_is_what_is_wrong() -> None:
    def broken_check() -> Iterator[doctor.Finding]:
        raise OSError("no such thing")
        yield

    (finding,) = doctor.findings_of(broken_check)
    assert finding.state == "wrong" and finding.says == "OSError: no such thing"
    assert doctor.shown(finding).splitlines()[0] == "NO    broken check: OSError: no such thing"


def test_a_folder_that_others_can_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "darwin":
        monkeypatch.setenv("HOME", str(tmp_path))
    folder = Path(str(doctor_folder()))
    folder.mkdir(parents=True, mode=0o700)
    folder.chmod(0o755)
    (finding,) = doctor.findings_of(doctor.cache)
    assert finding.state == "wrong" and finding.remedy == f"chmod 700 {folder}"
    folder.chmod(0o700)
    (finding,) = doctor.findings_of(doctor.cache)
    assert finding.state == "ok"


def doctor_folder() -> str | None:
    from perspex.runtime.compiler import disk

    return disk.default_directory()


def test_a_panel_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    place = tmp_path / "labextensions" / "perspex"
    place.mkdir(parents=True)
    (place / "package.json").write_text('{"version": "0.0.9"}')
    (finding,) = doctor.findings_of(doctor.panel)
    assert finding.state == "wrong" and "version 0.0.9" in finding.says
    assert f"Remove {place}" in finding.remedy


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        ("0.12.0.1", ">=0.10.2,<0.13", True),
        ("0.13.0", ">=0.10.2,<0.13", False),
        ("0.9.9", ">=0.10.2,<0.13", False),
        ("2.0.0rc1", ">=2.0", True),
    ],
)
def test_versions(found: str, wanted: str, fits: bool) -> None:
    assert doctor._fits(found, wanted) is fits


def test_explain_needs_no_jupyter(tmp_path: Path) -> None:
    """The pages belong to the core, so a script's environment has them, too."""
    blocked = "import sys\nfor name in ('IPython', 'ipykernel'): sys.modules[name] = None\n"
    program = f"{blocked}from perspex_command import main\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "explain", "stale"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# The notice `stale`")


def test_explain_says_what_is_spelled_alike() -> None:
    done = perspex("explain", "keyreus", env=_environment())
    assert done.returncode == 2 and "keyreuse?" in done.stderr
