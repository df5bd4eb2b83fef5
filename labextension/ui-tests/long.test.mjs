/**
 * What is large: a program of 10,000 equations, and a session of 2,000 cells and as many programs.
 * How long it takes is measured by `benchmarks/panel.mjs`.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rig } from './rig.mjs';

const EQUATIONS = 10_000;
const EVENTS = 2_000;
const LONG = [
  'import perspex, perspex.numpy as jnp\nfrom perspex import lax',
  [
    '@perspex.jit',
    'def long(x):',
    `    for i in range(${EQUATIONS / 2 - 2}):`,
    '        x = jnp.sin(x)',
    '        x = x * 1.5',
    '    def step(c, _):',
    '        return jnp.tanh(c), c.sum()',
    '    x, sums = lax.scan(step, x, None, length=3)',
    '    return x, sums',
    '',
    'long(jnp.ones(4))'
  ].join('\n')
];
/** Programs that are found in the cache, so that they come fast. */
const MANY = [
  'import perspex, perspex.numpy as jnp\nx = jnp.ones(3)',
  `for i in range(${EVENTS / 2}):\n    made = perspex.jit(lambda x: x + 1)\n    _ = made(x)`
];

const shared = rig();

/** The number that a text like `1,234` stands for. */
const whole = text => Number(text?.replaceAll(',', ''));

/** The numbers of the lines of a listing that are in the page, from 1. */
const numbers = box =>
  box.evaluate(node =>
    [...node.querySelectorAll('.pspx-program-line')].map(line => Number(line.dataset.row) + 1)
  );

test('a program of 10,000 equations is drawn, scrolled, searched, folded, and linked', async () => {
  const page = await shared.open('lab', 'long.ipynb', LONG);
  await page.showPanel('program');
  await page.run(1);
  await page.run(2);
  const tab = page.tab('program');
  await tab.locator('.pspx-program-title', { hasText: 'long' }).waitFor();
  const tree = tab.getByRole('tree', { name: 'Jaxpr' });
  await tree.getByText('sin', { exact: true }).first().waitFor();

  // It is drawn: only what is in sight is in the page, the scrollbar is that of all lines.
  const height = await tree.evaluate(node => node.scrollHeight);
  const shown = await numbers(tree);
  assert.equal(shown[0], 1);
  assert.ok(shown.length < 200, `${shown.length} lines are in the page`);
  assert.ok(height > 19 * EQUATIONS && height < 19 * (EQUATIONS + 100), String(height));

  // It scrolls: at each place stand the lines that belong there, and at the end the last one.
  for (const part of [0.5, 0.9, 0.2]) {
    await tree.evaluate((node, at) => (node.scrollTop = at * node.scrollHeight), part);
    const first = Math.floor((part * height) / 19);
    await page.until(async () => (await numbers(tree)).includes(first + 5));
    const line = tree.locator(`[data-row="${first + 5}"]`);
    assert.match(await line.innerText(), /:f32\[4\] = (sin|mul) /);
  }
  await tree.focus();
  await page.page.keyboard.press('End');
  await tree
    .getByText(/in \(.*\) }/)
    .last()
    .waitFor();

  // What is under the pointer is marked, in all forms that are shown.
  await tree.evaluate(node => (node.scrollTop = 19 * 5000));
  const middle = tree.locator('[data-row="5005"]');
  await middle.hover();
  await page.until(async () => (await tree.locator('.pspx-program-lit').count()) === 1);
  assert.match(await middle.getAttribute('class'), /pspx-program-lit/);
  await middle.click();
  const details = tab.getByRole('group', { name: 'Pinned equation' });
  const primitive = (await middle.innerText()).match(/= (\w+)/)[1];
  await details.getByText(primitive, { exact: true }).waitFor();
  await details.getByText('4 FLOPs', { exact: true }).waitFor();
  for (const [form, operation] of [
    ['StableHLO', { sin: 'stablehlo.sine', mul: 'stablehlo.multiply' }],
    ['Optimized HLO', { sin: ' sine(', mul: ' multiply(' }]
  ]) {
    await tab.getByRole('button', { name: form, exact: true }).click();
    const pinned = tab.getByRole('tree', { name: form }).locator('.pspx-program-pinned');
    await pinned.first().waitFor();
    const texts = await pinned.allInnerTexts();
    assert.ok(
      texts.some(text => text.includes(operation[primitive])),
      `${form}: ${texts}`
    );
  }

  // It is searched: every sine is found, and the last one is shown.
  await tab.getByRole('button', { name: 'Jaxpr', exact: true }).click();
  const search = tab.getByRole('searchbox', { name: /Search in all visible forms/ });
  await search.fill('= sin ');
  const sines = (EQUATIONS / 2 - 2).toLocaleString('en-US');
  await tab.getByText(`1 of ${sines} lines`).waitFor();
  await search.press('Shift+Enter');
  await tab.getByText(`${sines} of ${sines} lines`).waitFor();
  await page.until(async () => (await numbers(tree)).includes(EQUATIONS - 5));
  assert.ok((await tree.locator('mark').count()) > 0);
  await search.fill('');

  // It is folded: the loop's program goes, and comes again.
  await tree.evaluate(node => (node.scrollTop = node.scrollHeight));
  await tree.getByText('tanh', { exact: true }).waitFor();
  await tab.getByRole('button', { name: 'Jaxpr: fold nested programs' }).click();
  await tree.getByText('tanh', { exact: true }).waitFor({ state: 'detached' });
  await tree
    .getByText(/… \d+ lines/)
    .first()
    .waitFor();
  await tab.getByRole('button', { name: 'Jaxpr: unfold everything' }).click();
  await tree.evaluate(node => (node.scrollTop = node.scrollHeight));
  await tree.getByText('tanh', { exact: true }).waitFor();

  // The graph shows the equations around the pinned one.
  await tab.getByRole('button', { name: 'Graph', exact: true }).click();
  await tab.locator('svg .pspx-program-node').first().waitFor();
  assert.equal(await tab.locator('svg .pspx-program-node.pspx-program-pinned').count(), 1);

  assert.deepEqual(page.ownErrors(), []);
  await page.page.context().close();
});

test('2,000 programs and 2,000 cells: none is lost, though the page is loaded again', async () => {
  const page = await shared.open('lab', 'many.ipynb', MANY);
  await page.showPanel('program');
  await page.run(1);
  const tab = page.tab('program');
  const counted = async () =>
    whole((await tab.locator('.pspx-picker summary').innerText()).match(/\(([\d,]+)\)/)?.[1]);
  await page.until(async () => (await counted()) > 0);
  await page.tab('program').getByLabel('Follow').uncheck();
  const known = await counted();

  // The page goes while the cell makes programs; another cell makes as many.
  await page.send([MANY[1]]);
  await page.until(async () => (await counted()) > known);
  await page.reload();
  await page.showPanel('program');
  await page.send([MANY[1]]);
  await page.until(async () => (await counted()) >= known + EVENTS, 4);
  await page.idle();
  await page.page.waitForTimeout(500);
  assert.equal(await counted(), known + EVENTS);

  // Cells, faster than anybody can run them.
  const cells = Array.from({ length: EVENTS / 2 }, (_, i) => `${i}`);
  await page.showPanel('time');
  const rows = page.tab('time').locator('.pspx-entry');
  const inAll = async () => {
    const more = page.tab('time').getByRole('button', { name: /Show more/ });
    const left = (await more.count()) ? whole((await more.innerText()).match(/[\d,]+/)[0]) : 0;
    return (await rows.count()) + left;
  };
  await page.until(async () => (await inAll()) > 0);
  const before = await inAll();
  await page.send(cells);
  await page.page.waitForTimeout(200);
  await page.reload();
  await page.showPanel('time');
  await page.until(async () => (await inAll()) > 0);
  await page.send(cells);
  await page.until(async () => (await inAll()) >= before + EVENTS, 4);
  assert.equal(await inAll(), before + EVENTS);

  assert.deepEqual(page.ownErrors(), []);
  await page.page.context().close();
});
