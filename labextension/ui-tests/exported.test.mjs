/**
 * The widgets in a page that nbconvert made of a notebook with their state, as Voila and the
 * documentation of others show them: `@jupyter-widgets/html-manager` draws them, with anywidget and
 * RequireJS. What such a page loads from the net comes from the packages that are installed here,
 * and a page that asks for anything else fails.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { SEEN, VIEWS } from './notebooks.mjs';
import { browser, PYTHON } from './server.mjs';

/** Prints the page, and where the library of the page that hosts our modules is. */
const EXPORTED = `${VIEWS}
import sys
from pathlib import Path
import anywidget, nbformat
from ipywidgets.embed import embed_data
from nbconvert import HTMLExporter

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
cells = []
for name, widget in views.items():
    data = {VIEW: {"model_id": widget.model_id, "version_major": 2, "version_minor": 0}}
    data["text/plain"] = "the text of " + name
    output = nbformat.v4.new_output("display_data", data)
    cells.append(nbformat.v4.new_code_cell(name, outputs=[output]))
notebook = nbformat.v4.new_notebook(cells=cells)
notebook.metadata.widgets = {STATE: embed_data(list(views.values()), drop_defaults=False)["manager_state"]}
page, _ = HTMLExporter().from_notebook_node(notebook)
print(json.dumps({"page": page, "anywidget": str(Path(anywidget.__file__).parent)}))
`;

const ADDRESS = 'http://exported.test/';
const require = createRequire(import.meta.url);

let chromium;
let page;
const faults = [];

/** What the addresses in the page stand for; nothing for others. */
function served(url, made) {
  const manager = url.match(/@jupyter-widgets\/html-manager@[^/]+\/dist\/([\w.-]+)$/);
  if (url === ADDRESS) {
    return { contentType: 'text/html', body: made.page };
  }
  if (/\/require(\.min)?\.js$/.test(url)) {
    return { path: require.resolve('requirejs/require.js') };
  }
  if (manager) {
    return { path: require.resolve(`@jupyter-widgets/html-manager/dist/${manager[1]}`) };
  }
  if (/\/anywidget@[^/]+\/dist\/index\.js$/.test(url)) {
    return { path: `${made.anywidget}/nbextension/index.js` };
  }
  // Formulas, and diagrams in Markdown: the page has none.
  if (/mathjax/i.test(url)) {
    return { contentType: 'text/javascript', body: '' };
  }
  if (/mermaid/i.test(url)) {
    return { contentType: 'text/javascript', body: 'export default {};' };
  }
  // RequireJS looks beside the page first.
  return url === `${ADDRESS}anywidget.js` ? { status: 404, body: '' } : null;
}

before(async () => {
  const run = spawnSync(PYTHON, ['-c', EXPORTED], { encoding: 'utf8', maxBuffer: 1e8 });
  assert.equal(run.status, 0, run.stderr);
  const made = JSON.parse(run.stdout.trim().split('\n').at(-1));
  chromium = await browser();
  page = await (await chromium.newContext()).newPage();
  page.on('pageerror', error => faults.push(String(error.cause ?? error.stack)));
  // Chromium reports the 404 below, too.
  page.on('console', message => {
    if (message.type() === 'error' && !message.location().url.endsWith('/anywidget.js')) {
      faults.push(message.text());
    }
  });
  page.setDefaultTimeout(10_000);
  await page.route('**', async route => {
    const url = route.request().url();
    const answer = served(url, made);
    if (answer) {
      await route.fulfill({ ...answer, headers: { 'Access-Control-Allow-Origin': '*' } });
    } else {
      faults.push(`asked for ${url}`);
      await route.abort();
    }
  });
  await page.goto(ADDRESS);
});

after(() => chromium?.close());

describe('a page of nbconvert, with the state of the widgets', () => {
  for (const [place, name] of Object.keys(SEEN).entries()) {
    test(name, async () => {
      const cell = page.locator('.jp-Cell').nth(place);
      for (const text of SEEN[name]) {
        await cell.getByText(text).filter({ visible: true }).first().waitFor();
      }
      const { width, height } = await cell.locator('.pspx-view').first().boundingBox();
      assert.ok(width > 200 && height > 50, `${width} x ${height}`);
      assert.equal(
        await cell.getByText(`the text of ${name}`).filter({ visible: true }).count(),
        0
      );
    });
  }

  test('a key can be looked at, and what needs a kernel is not offered', async () => {
    const split = page.getByRole('button', { name: 'Split' });
    await split.waitFor();
    await page
      .getByText('The kernel is not responding.')
      .filter({ visible: true })
      .first()
      .waitFor();
    assert.ok(await split.isDisabled());
  });

  test('the page asked for nothing else, and nothing failed', () => {
    assert.deepEqual(faults, []);
  });
});
