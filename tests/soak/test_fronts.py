"""Front ends of others start our kernel and show what it says: Voila, JupyterHub, a MyST page.

Each is a package with servers and plugins of its own, so none is in the environment of the other
tests. `make test-fronts` makes one that has them, and `PERSPEX_FRONTS` names it. What is in our own
environment is tested elsewhere: nbconvert, papermill, jupytext and the console in `test_blocks.py`,
the widgets in VS Code in `labextension/ui-tests/vscode.test.mjs`.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import nbformat
import pytest
import websocket
from support import kept

FRONTS = Path(os.environ.get("PERSPEX_FRONTS", "")).absolute()
pytestmark = pytest.mark.skipif(
    "PERSPEX_FRONTS" not in os.environ, reason="needs Voila and others; make test-fronts"
)
CELLS = [
    "import jax, jax.numpy as jnp\nrate = 2.0\n@jax.jit\ndef f(x):\n    return rate * x",
    "print(f(jnp.arange(3.0)))",
    "rate = 5.0",
    "f(jnp.arange(3.0))",
]
LONGEST = 200
ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def environment(home: Path) -> dict[str, str]:
    """What somebody has who has only the programs of that environment."""
    ours = ("PYTHON", "JUPYTER", "IPYTHON", "VIRTUAL_ENV", "XDG_")
    mine = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{FRONTS / 'bin'}{os.pathsep}{mine['PATH']}"
    return {**mine, **kept.environment(), "HOME": str(home), "PATH": path}


@contextmanager
def server(command: list[str], says: str, env: dict[str, str], cwd: Path) -> Iterator[None]:
    """A server, from the line in which it says that it is there until it has ended."""
    command = [str(FRONTS / "bin" / command[0]), *command[1:]]
    process = subprocess.Popen(
        command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if says in line:
                break
        else:
            raise AssertionError(f"{command[0]} ended:\n{said}")
        # What it says from here on must not fill the pipe.
        rest = Thread(target=process.stdout.read)
        rest.start()
        try:
            yield
        finally:
            process.terminate()
            rest.join()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_voila_shows_values_and_notices(tmp_path: Path) -> None:
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS],
        metadata={"kernelspec": {"name": "perspex", "display_name": "Perspex"}},
    )
    nbformat.write(made, tmp_path / "page.ipynb")
    port = free_port()
    command = ["voila", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1", "page.ipynb"]
    url = f"http://127.0.0.1:{port}/"
    with (
        server(command, url.rstrip("/"), environment(tmp_path), tmp_path),
        urllib.request.urlopen(url, timeout=LONGEST) as answer,
    ):
        page = answer.read().decode()
    assert "[0. 2. 4.]" in page
    # Its page draws other outputs from their data, which it holds.
    assert "application/vnd.perspex.stale+json" in page and "Stale capture" in page
    assert "Array([0., 2., 4.]" in page


MYST = """---
file_format: mystnb
kernelspec:
  name: perspex
---

# A page that a person wrote in Markdown

```{code-cell} python
"""


def test_a_markdown_page_is_run_and_becomes_html(tmp_path: Path) -> None:
    """As Jupyter Book and Quarto make pages: text with cells, whose header names the kernel."""
    page = MYST + "\n```\n\n```{code-cell} python\n".join(CELLS) + "\n```\n"
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    made = subprocess.run(
        [FRONTS / "bin/mystnb-docutils-html5", "--nb-read-as-md=yes", "page.md", "page.html"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "[0. 2. 4.]" in text and "Stale capture" in text, made.stderr
    assert "(ERROR/" not in made.stderr and "(WARNING/" not in made.stderr, made.stderr


# ---- JupyterHub ---------------------------------------------------------------------------------

# Anybody may log in, servers are processes of ours, and the test is a service that may do all that
# it does here.
HUB = """
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{place}/home/{{username}}"
c.Spawner.args = ["--allow-root"]
c.Spawner.start_timeout = c.Spawner.http_timeout = {longest}
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.command = ["{fronts}/node_modules/.bin/configurable-http-proxy"]
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers"]}},
    {{"name": "guest", "services": ["test"], "scopes": ["access:servers"]}},
]
"""


class Hub:
    """What a service asks of a hub, and of the servers behind it."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def ask(self, path: str, method: str = "GET", body: object = None) -> bytes:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=LONGEST) as answer:
            said: bytes = answer.read()
        return said

    def started(self, user: str) -> str:
        """The path of a user's server, once it has started."""
        self.ask(f"/hub/api/users/{user}", "POST")
        self.ask(f"/hub/api/users/{user}/server", "POST")
        # A stream of events, which ends with the one that says whether it is there.
        said = self.ask(f"/hub/api/users/{user}/server/progress").decode()
        last = json.loads(re.findall(r"^data: (.*)$", said, re.MULTILINE)[-1])
        assert last.get("ready"), said
        path: str = last["url"]
        return path

    def run(self, server: str, kernel: str, cell: str) -> list[dict[str, Any]]:
        """The messages in which a kernel says what a cell does."""
        address = f"{self.url}{server}api/kernels/{kernel}/channels".replace("http", "ws", 1)
        header = {"msg_id": uuid.uuid4().hex, "username": "", "session": uuid.uuid4().hex}
        header |= {"msg_type": "execute_request", "version": "5.3"}
        content = {"code": cell, "silent": False, "store_history": True, "user_expressions": {}}
        content |= {"allow_stdin": False, "stop_on_error": True}
        request = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        found = []
        socket = websocket.create_connection(
            address, timeout=LONGEST, header=[f"Authorization: token {self.token}"]
        )
        try:
            socket.send(json.dumps({**request, "channel": "shell", "buffers": []}))
            while True:
                message = json.loads(socket.recv())
                if message["parent_header"].get("msg_id") != header["msg_id"]:
                    continue
                found.append(message)
                if message["content"].get("execution_state") == "idle":
                    return found
        finally:
            socket.close()


def on_the_page() -> str:
    """The lines of configuration on the page that says how to offer Perspex on a hub."""
    text = (ROOT / "docs/howto/deploy-on-jupyterhub.md").read_text(encoding="utf-8")
    lines: list[str] = re.findall(r"`(c\.\w+\.\w+ = .*?)`", text)
    assert lines
    return "\n".join(lines)


def test_jupyterhub_starts_a_server_with_kernel_and_panel(tmp_path: Path) -> None:
    public, hub_port, proxy = free_port(), free_port(), free_port()
    token = uuid.uuid4().hex
    made = HUB.format(
        place=tmp_path, longest=LONGEST, public=public, hub=hub_port, proxy=proxy, fronts=FRONTS,
        token=token,
    )  # fmt: skip
    (tmp_path / "jupyterhub_config.py").write_text(made + on_the_page())
    with server(["jupyterhub"], "JupyterHub is now running", environment(tmp_path), tmp_path):
        hub = Hub(f"http://127.0.0.1:{public}", token)
        mine = hub.started("reader")
        try:
            assert mine == "/user/reader/"
            specs = json.loads(hub.ask(f"{mine}api/kernelspecs"))["kernelspecs"]
            assert specs["perspex"]["spec"]["display_name"] == "Perspex"

            # The page of JupyterLab loads the panel, and its script is there.
            page = hub.ask(f"{mine}lab").decode()
            (config,) = re.findall(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
            extensions = {e["name"]: e for e in json.loads(config)["federated_extensions"]}
            script = f"{mine}lab/extensions/perspex/{extensions['perspex']['load']}"
            assert b"perspex" in hub.ask(script)

            kernel = json.loads(hub.ask(f"{mine}api/kernels", "POST", {"name": "perspex"}))["id"]
            for cell in CELLS:
                said = hub.run(mine, kernel, cell)
            shown = [m["content"]["data"] for m in said if "data" in m["content"]]
            assert any("Array([0., 2., 4.]" in data["text/plain"] for data in shown), said
            assert any("application/vnd.perspex.stale+json" in data for data in shown), said
            # What the page sets reaches the kernel.
            (told,) = (
                m["content"]["text"]
                for m in hub.run(mine, kernel, "import os; print(os.environ['PERSPEX_PLATFORMS'])")
                if m["msg_type"] == "stream"
            )
            assert told == "cpu\n"
        finally:
            hub.ask("/hub/api/users/reader/server", "DELETE")
