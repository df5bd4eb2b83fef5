/**
 * The widgets where VS Code shows them: in the widget manager that its Jupyter extension loads into a
 * notebook's page, as it is published (`@vscode/jupyter-ipywidgets8`), on a real kernel. VS Code hands
 * that manager a connection to the kernel and the files of widgets that the kernel's environment has;
 * so does this page. `make test-fronts` fetches the package, and PERSPEX_FRONTS names its folder.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { SEEN, WIDGETS } from './notebooks.mjs';
import { browser, PYTHON, serve } from './server.mjs';

const FRONTS = process.env.PERSPEX_FRONTS;
const MANAGER = resolve(FRONTS ?? '', 'vscode/package/dist/ipywidgets.js');
const skip = FRONTS ? false : 'needs the package of VS Code; make test-fronts';
const require = createRequire(import.meta.url);
/** What is to be seen of each widget: the key of these cells is another than that of `SEEN`. */
const TEXTS = { ...SEEN, key_explorer: ['sub', 'split'] };

let server;
let chromium;
let page;
const faults = [];

/** What VS Code brings besides: the connection to a kernel, as one script. */
async function services() {
  const bundle = await rolldown({
    input: require.resolve('@jupyterlab/services'),
    platform: 'browser',
    logLevel: 'silent'
  });
  const { output } = await bundle.generate({ format: 'iife', name: 'services' });
  return output[0].code;
}

/** In the page: a kernel, the manager, and a function that runs a cell and shows its widgets. */
async function host(address) {
  const { KernelManager, ServerConnection } = window.services;
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: address,
    wsUrl: address.replace('http', 'ws')
  });
  const kernel = await new KernelManager({ serverSettings }).startNew({ name: 'perspex' });
  const { activate } = await import(`${address}/host/manager.js`);
  activate();
  window.vscIPyWidgets8.load();
  const scripts = {
    widgetsRegisteredInRequireJs: new Set(),
    loaded: [],
    errorHandler: (name, module) => console.error(`no ${name} of ${module}`),
    successHandler: () => undefined,
    loadWidgetScript(module) {
      scripts.loaded.push(module);
      window.requirejs.config({ paths: { [module]: `/host/${module}` } });
      return Promise.resolve();
    }
  };
  const main = document.querySelector('main');
  const manager = new window.vscIPyWidgets.WidgetManager(kernel, main, scripts, () => undefined);
  const MIME = 'application/vnd.jupyter.widget-view+json';
  window.scripts = scripts;
  window.run = async (code, name) => {
    const future = kernel.requestExecute({ code });
    const drawn = [];
    future.onIOPub = ({ content }) => {
      const data = content.data?.[MIME];
      if (data) {
        const node = document.createElement('section');
        node.setAttribute('aria-label', name);
        main.append(node);
        drawn.push(
          manager
            .get_model(data.model_id)
            .then(model => manager.create_view(model, { el: node }))
            .then(view => manager.display_view(data, view, { node }))
        );
      }
    };
    const { content } = await future.done;
    await Promise.all(drawn);
    return [content.status, drawn.length];
  };
}

before(async () => {
  if (skip) {
    return;
  }
  const where = ['-c', 'import anywidget; print(anywidget.__path__[0])'];
  const anywidget = spawnSync(PYTHON, where, { encoding: 'utf8' }).stdout.trim();
  server = await serve();
  chromium = await browser();
  page = await (await chromium.newContext()).newPage();
  page.setDefaultTimeout(60_000);
  const script = { contentType: 'text/javascript' };
  const files = {
    'require.js': { ...script, path: require.resolve('requirejs/require.js') },
    'services.js': { ...script, body: await services() },
    'manager.js': { ...script, path: MANAGER },
    'anywidget.js': { ...script, path: `${anywidget}/nbextension/index.js` }
  };
  // A page that the server has sent itself may talk to kernels.
  await page.goto(`${server.url}/logout`);
  await page.context().request.get(`${server.url}/lab`);
  await page.route('**', route => {
    const url = route.request().url();
    if (url.startsWith(`${server.url}/api/`)) {
      return route.continue();
    }
    const file = files[url.replace(`${server.url}/host/`, '')];
    if (file) {
      return route.fulfill(file);
    }
    faults.push(`asked for ${url}`);
    return route.abort();
  });
  page.on('pageerror', error => faults.push(String(error.stack)));
  page.on('console', message => message.type() === 'error' && faults.push(message.text()));
  await page.setContent('<!doctype html><title>host</title><main></main>');
  await page.addScriptTag({ url: `${server.url}/host/services.js` });
  await page.addScriptTag({ url: `${server.url}/host/require.js` });
  await page.evaluate(host, server.url);
  assert.deepEqual(await page.evaluate(code => window.run(code), WIDGETS[0]), ['ok', 0]);
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

describe('the widget manager of VS Code', { skip }, () => {
  for (const [name, texts] of Object.entries(TEXTS)) {
    test(`draws ${name}`, async () => {
      const cell = WIDGETS.find(source => source.startsWith(`perspex.${name}(`));
      const ran = await page.evaluate(([code, to]) => window.run(code, to), [cell, name]);
      assert.deepEqual(ran, ['ok', 1]);
      const view = page.getByLabel(name, { exact: true });
      for (const text of texts) {
        await view.getByText(text).filter({ visible: true }).first().waitFor();
      }
      const { width, height } = await view.boundingBox();
      assert.ok(width > 200 && height > 50, `${width} x ${height}`);
    });
  }

  test('and what a view asks of the kernel is answered', async () => {
    const keys = page.getByLabel('key_explorer', { exact: true });
    await keys.getByRole('button', { name: 'Split' }).click();
    await keys.getByRole('treeitem', { name: 'split[1]' }).waitFor();
  });

  test('with no file but that of anywidget, and no error', async () => {
    assert.deepEqual([...new Set(await page.evaluate(() => window.scripts.loaded))], ['anywidget']);
    assert.deepEqual(faults, []);
  });
});
