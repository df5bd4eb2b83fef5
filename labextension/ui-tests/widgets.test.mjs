/**
 * The widgets in JupyterLab and in Notebook 7, on a real kernel: by mouse, by keyboard, in all
 * themes.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HOSTILE_WIDGETS, WIDGETS } from './notebooks.mjs';
import { rig } from './rig.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const THEMES = ['JupyterLab Light', 'JupyterLab Dark', 'JupyterLab Dark High Contrast'];

const shared = rig();

for (const app of ['lab', 'notebook']) {
  describe(app, () => {
    let page;
    let keys;

    before(async () => {
      // High enough for all cells: a notebook draws only those in sight.
      const size = { width: 1400, height: 2600 };
      page = await shared.open(app, `widgets-${app}.ipynb`, WIDGETS, size);
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
      await keys.getByLabel('Number of keys').press('Enter');
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
      await keys.getByText('must be a whole number from 0 to').waitFor();
    });

    test('Programs, timings, and the cache, which follows the session', async () => {
      await page.page.locator('.pspx-program').getByText('tanh').first().waitFor();
      await page.page.getByRole('group', { name: 'Timings' }).getByText('median').waitFor();
      const cache = page.page.locator('.jp-Notebook .pspx-cache');
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

    test('A preview is a histogram, and no node', async () => {
      await node(/^sub/).click();
      await page.until(async () => (await selected()).startsWith('sub'));
      const nodes = await keys.getByRole('treeitem').count();
      await keys.getByText('Preview of').press('Enter');
      await keys.getByRole('img', { name: 'Histogram of 1,000 samples' }).waitFor();
      await keys.getByLabel('Distribution', { exact: true }).selectOption('gamma');
      await keys.getByText('Preview of gamma').waitFor();
      assert.equal(await keys.getByRole('treeitem').count(), nodes);
      await keys.getByText('Preview of').press('Enter');
    });

    test('The graph of a program, and what changed since the version before', async () => {
      const program = page.page.locator('.jp-Notebook .pspx-program').nth(2);
      await program.getByRole('button', { name: 'Graph', exact: true }).press('Enter');
      const graph = program.getByRole('group', { name: 'Graph' });
      const scan = graph.getByRole('button', { name: /^scan/ });
      await scan.focus();
      await page.page.keyboard.press('Enter');
      await program.getByRole('group', { name: 'Pinned equation' }).getByText('scan').waitFor();
      await page.page.keyboard.press('ArrowRight');
      await program.getByText('5 equations').waitFor();
      assert.equal(await graph.getByRole('button', { name: /^sin/ }).count(), 0);
      await program.getByRole('button', { name: 'program', exact: true }).press('Enter');
      await graph.getByRole('button', { name: /^sin/ }).waitFor();
      await program.getByRole('button', { name: 'Difference' }).press('Enter');
      await program.getByText('Changed lines: Source').waitFor();
      const added = program.getByRole('tree', { name: 'Jaxpr' }).locator('.pspx-program-new');
      await added.filter({ hasText: 'cos a' }).waitFor();
      assert.equal(await added.filter({ hasText: 'sin a' }).count(), 0);
      const first = page.page.locator('.jp-Notebook .pspx-program').nth(1);
      assert.equal(await first.getByRole('button', { name: 'Difference' }).count(), 0);
    });

    test('Programs are pinned, evicted and cleared by the keyboard alone', async () => {
      const cache = page.page.locator('.jp-Notebook .pspx-cache');
      const rows = cache.locator('.pspx-cache-row', { hasText: 'step' });
      const focus = () => page.page.evaluate(() => document.activeElement.textContent);
      const pin = cache.getByRole('button', { name: 'Pin', exact: true });
      if (!(await pin.count())) {
        await rows.first().getByRole('button').press('Enter');
      }
      await pin.press('Enter');
      await cache.getByText(/^Pinned `step` \(.+\) in memory\.$/).waitFor();
      assert.equal(await focus(), 'Unpin');
      await page.page.keyboard.press('Enter');
      await cache.getByText(/^Unpinned `step` \(.+\)\.$/).waitFor();
      const n = await rows.count();
      await cache.getByRole('button', { name: 'Evict' }).press('Enter');
      await cache
        .getByText(/^Evicted `step` \(.+\)\. The next call compiles it again\.$/)
        .waitFor();
      await page.until(async () => (await rows.count()) < n);
      assert.notEqual(await focus(), '');
      await cache.getByRole('button', { name: 'Clear…' }).press('Enter');
      assert.equal(await focus(), 'Keep');
      await page.page.keyboard.press('Enter');
      assert.equal(await focus(), 'Clear…');
      assert.ok((await cache.locator('.pspx-cache-row').count()) > 0);
      await page.page.keyboard.press('Enter');
      await cache.getByRole('button', { name: 'Evict all' }).press('Enter');
      await cache
        .getByText(/^Removed \d+ programs? from memory\. Programs on disk remain;/)
        .waitFor();
      await cache.getByText('Nothing has been compiled yet').waitFor();
      await page.evaluate('step(jnp.ones((5, 5)))');
      await page.run(1);
      await rows.first().waitFor();
    });

    test('Every theme is accessible, and so are the displays of values', async () => {
      for (const theme of THEMES) {
        await page.theme(theme);
        assert.deepEqual(await page.violations(AXE, '.pspx-view'), [], theme);
        assert.deepEqual(await page.violations(AXE, '.jp-RenderedHTML'), [], theme);
      }
      await page.theme(THEMES[0]);
    });

    test('Colours of the system: what is pressed, selected or counted is seen', async () => {
      for (const colorScheme of ['light', 'dark']) {
        await page.page.emulateMedia({ forcedColors: 'active', colorScheme });
        await node('split[1]').click();
        await page.until(async () => (await selected()).startsWith('split[1]'));
        assert.deepEqual(await page.violations(AXE, '.pspx-view'), [], colorScheme);
        assert.deepEqual(await page.violations(AXE, '.jp-RenderedHTML'), [], colorScheme);
        const style = (locator, name) =>
          locator.evaluate((element, key) => getComputedStyle(element)[key], name);
        const program = page.page.locator('.jp-Notebook .pspx-program').nth(2);
        const button = name => program.getByRole('button', { name, exact: true });
        const canvas = await style(page.page.locator('.jp-Notebook .pspx-cache'), 'color');
        assert.notEqual(
          await style(button('Graph'), 'backgroundColor'),
          await style(button('StableHLO'), 'backgroundColor')
        );
        assert.equal(await style(program.locator('.pspx-program-edge').first(), 'stroke'), canvas);
        assert.equal(await style(program.locator('rect').first(), 'stroke'), canvas);
        const current = keys.getByRole('treeitem', { selected: true });
        assert.equal(await style(current, 'outlineStyle'), 'solid');
        const letters = keys.locator('.pspx-keys-lit .pspx-keys-alike');
        assert.notEqual(await style(letters.first(), 'backgroundColor'), 'rgba(0, 0, 0, 0)');
      }
      await page.page.emulateMedia({ forcedColors: null, colorScheme: null });
    });

    test('They are there again after the page is reloaded', async () => {
      await page.command('docmanager:save');
      await page.page.goto(page.page.url().replace(/\?reset$/, ''));
      await page.ready();
      await keys.waitFor();
      assert.ok((await keys.innerText()).includes('fold_in(1)'));
      // The kernel has answered both, so what they offer can be asked for.
      const cache = page.page.locator('.jp-Notebook .pspx-cache');
      await keys.getByRole('button', { name: 'Split', disabled: false }).waitFor();
      await cache.getByRole('button', { name: 'Clear…', disabled: false }).waitFor();
    });

    test('Without a kernel that answers, they say so, and offer nothing', async () => {
      await page.restart();
      await keys.getByRole('button', { name: 'Split' }).click();
      await keys.getByText('The kernel is not responding.').waitFor();
      assert.ok(await keys.getByRole('button', { name: 'Fold in' }).isDisabled());
      const cache = page.page.locator('.jp-Notebook .pspx-cache');
      await cache.locator('.pspx-cache-row').first().getByRole('button').press('Enter');
      await cache.getByRole('button', { name: 'Evict' }).press('Enter');
      await cache.getByText('The kernel is not responding.').first().waitFor();
      assert.ok(await cache.getByRole('button', { name: 'Evict' }).isDisabled());
      assert.ok(await cache.getByRole('button', { name: 'Clear…' }).isDisabled());
    });
  });
}

test('Hostile names are text in widgets and displays', async () => {
  const size = { width: 1400, height: 3000 };
  const page = await shared.open('lab', 'hostile-widgets.ipynb', HOSTILE_WIDGETS, size);
  for (let i = 1; i <= HOSTILE_WIDGETS.length; i++) {
    await page.run(i);
  }
  const keys = page.page.locator('.jp-Notebook .pspx-keys');
  await keys.getByRole('button', { name: 'Split' }).click();
  await keys.getByRole('treeitem', { name: 'split[1]' }).waitFor();
  const outputs = page.page.locator('.jp-Notebook .jp-OutputArea-output');
  const texts = await outputs.allInnerTexts();
  const all = texts.join('');
  assert.ok(all.includes('<img src=x onerror=window.hacked=2>\\u202e'));
  assert.ok(all.includes('<b onmouseover=window.hacked=3>\\u2066'));
  assert.doesNotMatch(all, /[\u202e\u2066]/);
  assert.ok(all.length < 20_000, String(all.length));
  assert.equal(await page.page.evaluate(() => window.hacked), undefined);
  const height = await page.page.locator('.jp-Notebook').evaluate(node => node.scrollHeight);
  assert.ok(height < 4000, String(height));
  await page.page.context().close();
});

test('A page that nbconvert makes shows them without scripts and without a net', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perspex-export-'));
  try {
    const { pathname } = new URL('../../.venv/bin/jupyter', import.meta.url);
    shared.server.write('exported.ipynb', WIDGETS, 'perspex', folder);
    const { status, stderr } = spawnSync(
      pathname,
      ['nbconvert', '--execute', '--to', 'html', join(folder, 'exported.ipynb')],
      {
        encoding: 'utf-8',
        env: { ...process.env, XDG_CACHE_HOME: folder, JUPYTER_DATA_DIR: folder }
      }
    );
    assert.equal(status, 0, stderr);
    for (const javaScriptEnabled of [false, true]) {
      const context = await shared.chromium.newContext({ offline: true, javaScriptEnabled });
      const page = await context.newPage();
      await page.goto(`file://${join(folder, 'exported.html')}`);
      const cell = number =>
        page
          .locator('.jp-CodeCell')
          .nth(number - 1)
          .locator('.jp-OutputArea');
      await cell(2).getByText('used by random.normal(sub, (3,))').waitFor();
      await cell(3).getByText('dot_general').first().waitFor();
      await cell(4).getByText('median').waitFor();
      await cell(4).getByRole('img', { name: 'Histogram' }).waitFor();
      await cell(5).getByText('XLA took').waitFor();
      if (javaScriptEnabled) {
        await page.evaluate(AXE);
        const found = await page.evaluate(() =>
          window.axe.run('.jp-OutputArea-output', { resultTypes: ['violations'] })
        );
        assert.deepEqual(
          found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`),
          []
        );
      }
      await context.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
