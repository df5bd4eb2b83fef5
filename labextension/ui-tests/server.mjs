/**
 * A Jupyter server and a browser for the tests, with settings, caches and notebooks in a folder of
 * their own, so that nothing of the user's is read or written.
 */

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const ROOT = new URL('../..', import.meta.url).pathname;
export const PYTHON = join(ROOT, '.venv/bin/python');
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync
);

/** Why there can be no browser test here, or nothing. */
export function missing() {
  return !CHROMIUM
    ? 'Chromium was not found'
    : !existsSync(PYTHON)
      ? `${PYTHON} was not found`
      : null;
}

async function freePort() {
  const server = createServer();
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise(resolve => server.close(resolve));
  return port;
}

/** A server of JupyterLab and Notebook 7. */
export async function serve() {
  const home = mkdtempSync(join(tmpdir(), 'perspex-panel-'));
  const folder = join(home, 'work');
  mkdirSync(folder);
  const settings = join(home, 'settings/@jupyterlab/apputils-extension');
  mkdirSync(settings, { recursive: true });
  writeFileSync(
    join(settings, 'notification.jupyterlab-settings'),
    JSON.stringify({ fetchNews: 'false', checkForUpdates: false })
  );
  const port = await freePort();
  const server = spawn(
    PYTHON,
    [
      '-m',
      'jupyter',
      'lab',
      '--no-browser',
      '--allow-root',
      '--ServerApp.ip=127.0.0.1',
      `--ServerApp.port=${port}`,
      '--ServerApp.port_retries=0',
      '--IdentityProvider.token=',
      `--ServerApp.root_dir=${folder}`,
      '--LabApp.expose_app_in_browser=True',
      '--JupyterNotebookApp.expose_app_in_browser=True'
    ],
    {
      env: {
        ...process.env,
        HOME: home,
        XDG_CACHE_HOME: join(home, 'cache'),
        IPYTHONDIR: join(home, 'ipython'),
        JUPYTER_CONFIG_DIR: join(home, 'config'),
        JUPYTER_DATA_DIR: join(home, 'data'),
        JUPYTER_RUNTIME_DIR: join(home, 'runtime'),
        JUPYTERLAB_SETTINGS_DIR: join(home, 'settings'),
        JUPYTERLAB_WORKSPACES_DIR: join(home, 'workspaces')
      },
      stdio: ['ignore', 'pipe', 'pipe']
    }
  );
  let said = '';
  server.stdout.on('data', data => (said += data));
  server.stderr.on('data', data => (said += data));
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; ; i++) {
    if (server.exitCode !== null || i > 300) {
      throw new Error(`The Jupyter server did not start:\n${said.slice(-4000)}`);
    }
    try {
      if ((await fetch(`${url}/api/status`)).ok) {
        break;
      }
    } catch {
      await new Promise(resolve => setTimeout(resolve, 200));
    }
  }
  return {
    url,
    log: () => said,
    /** Write a notebook; `cells` are the texts of its cells. */
    write(name, cells, kernel = 'perspex', into = folder) {
      const notebook = {
        cells: cells.map((source, i) => ({
          cell_type: 'code',
          id: `cell-${i + 1}`,
          execution_count: null,
          metadata: {},
          outputs: [],
          source
        })),
        metadata: { kernelspec: { name: kernel, display_name: kernel, language: 'python' } },
        nbformat: 4,
        nbformat_minor: 5
      };
      writeFileSync(join(into, name), JSON.stringify(notebook));
    },
    async stop() {
      server.kill('SIGINT');
      server.kill('SIGTERM');
      await new Promise(resolve => {
        server.once('exit', resolve);
        setTimeout(() => {
          server.kill('SIGKILL');
          resolve();
        }, 8000).unref();
      });
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    }
  };
}

export function browser() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync'
    ]
  });
}
