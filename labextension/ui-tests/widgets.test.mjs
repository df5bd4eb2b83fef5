/**
 * The widgets in JupyterLab and in Notebook 7, on a real kernel: by mouse, by keyboard, in all
 * themes.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { WIDGETS } from './notebooks.mjs';
import { Page } from './pages.mjs';
import { browser, serve } from './server.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const THEMES = ['JupyterLab Light', 'JupyterLab Dark', 'JupyterLab Dark High Contrast'];

let server;
let chromium;

before(async () => {
  server = await serve();
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await server?.stop();
});

for (const app of ['lab', 'notebook']) {
  describe(app, () => {
    let page;
    let keys;

    before(async () => {
      server.write(`widgets-${app}.ipynb`, WIDGETS);
      // High enough for all cells: a notebook draws only those in sight.
      const context = await chromium.newContext({ viewport: { width: 1400, height: 2600 } });
      page = new Page(await context.newPage(), server, app);
      await page.open(`widgets-${app}.ipynb`);
      for (let i = 1; i <= WIDGETS.length; i++) {
        await page.run(i);
      }
      keys = page.page.locator('.pspx-keys');
      await keys.waitFor();
    });

    after(async () => {
      assert.deepEqual(
        page.errors.filter(text => text.includes('pspx') || text.includes('blob:')),
        []
      );
      await page.page.context().close();
    });

    const node = name => keys.getByRole('treeitem', { name });
    const selected = () => keys.getByRole('treeitem', { selected: true }).innerText();

    test('A key is split, folded in and drawn with by the keyboard alone', async () => {
      const current = keys.getByRole('treeitem', { selected: true });
      await keys.getByLabel('Into how many keys').press('Enter');
      await node('split[1]').waitFor();
      await current.press('ArrowLeft');
      await page.until(async () => (await selected()).startsWith('sub'));
      await keys.getByLabel('Number to fold in').fill('1');
      await keys.getByLabel('Number to fold in').press('Enter');
      await node('fold_in(1)').waitFor();
      // The same hash as that of the second key of the split.
      await keys.getByText('The same bits as split[1]').waitFor();
      assert.equal(await keys.locator('.pspx-keys-lit').count(), 2);
      await keys.getByLabel('Shape of the samples').fill('(30, 20)');
      await keys.getByLabel('Shape of the samples').press('Enter');
      await keys.locator('.pspx-histogram').waitFor();
      assert.ok((await keys.innerText()).includes('float32[30, 20]'));
      assert.equal(await keys.getByRole('row', { name: /^round/ }).count(), 20);
      await current.press('Delete');
      await page.until(async () => (await selected()).startsWith('fold_in(1)'));
    });

    test('The code of a node gives the key that is shown', async () => {
      await node('split[0]').click();
      await page.until(async () => (await selected()).startsWith('split[0]'));
      const code = await keys.locator('.pspx-keys-head code').innerText();
      const [, expression] = code.split(' = ');
      const numbers = await page.evaluate(`str(random.key_data(${expression}).tolist())`);
      const shown = (await selected()).match(/[0-9a-f]{8}/g).map(word => parseInt(word, 16));
      assert.equal(numbers, `'[${shown.join(', ')}]'`);
    });

    test('Uses in the notebook are told; those here are none', async () => {
      await keys.getByText('used by random.normal(sub, (3,))').waitFor();
      assert.equal(await keys.getByText('used by').count(), 1);
    });

    test('What cannot be done is said', async () => {
      await keys.getByLabel('Number to fold in').fill('-1');
      await keys.getByRole('button', { name: 'Fold in' }).click();
      await keys.getByText('is a whole number from 0 to').waitFor();
    });

    test('Programs, timings, and the cache, which follows the session', async () => {
      await page.page.locator('.pspx-program').getByText('tanh').first().waitFor();
      await page.page.getByRole('region', { name: 'Timings' }).getByText('median').waitFor();
      const cache = page.page.locator('.pspx-cache');
      await cache.getByRole('button', { name: 'step' }).first().waitFor();
      const rows = cache.locator('.pspx-cache-row', { hasText: 'step' });
      const n = await rows.count();
      await page.evaluate('step(jnp.ones((5, 5)))');
      await page.run(WIDGETS.length);
      await page.until(async () => (await rows.count()) > n);
      await rows.first().getByRole('button').focus();
      await page.page.keyboard.press('Enter');
      await cache.getByText('f32[4,4] -> f32[5,5]').waitFor();
    });

    test('Every theme is accessible, and so are the displays of values', async () => {
      for (const theme of THEMES) {
        await page.theme(theme);
        assert.deepEqual(await page.violations(AXE, '.pspx-view'), [], theme);
        assert.deepEqual(await page.violations(AXE, '.jp-RenderedHTML'), [], theme);
      }
      await page.theme(THEMES[0]);
    });

    test('They are there again after the page is loaded anew', async () => {
      await page.command('docmanager:save');
      await page.page.goto(page.page.url().replace(/\?reset$/, ''));
      await page.ready();
      await keys.waitFor();
      assert.ok((await keys.innerText()).includes('fold_in(1)'));
    });
  });
}
