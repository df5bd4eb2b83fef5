/**
 * A restart that keeps the session, in JupyterLab: it sees the same kernel all the time, by `%restart`
 * in a cell and by the panel's button while a cell runs.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rig } from './rig.mjs';

const SOURCES = [
  [
    'import os, time, perspex, perspex.numpy as jnp',
    'x = jnp.arange(4.0)',
    'double = perspex.jit(lambda x: x * 2)',
    'file = open(os.devnull)',
    'print(os.getpid(), double(x))'
  ].join('\n'),
  '%restart',
  'print(double(x).sum())',
  'time.sleep(10_000)'
];

const shared = rig();

test('the notebook and the panel go on in the new process', async () => {
  const page = await shared.open('lab', 'restart.ipynb', SOURCES);
  const output = number =>
    page.page
      .locator('.jp-Notebook .jp-Cell')
      .nth(number - 1)
      .locator('.jp-OutputArea');
  await page.showPanel('time');
  await page.run(1);
  const rows = page.tab('time').locator('.pspx-entry');
  await page.until(async () => (await rows.count()) === 1);

  await page.run(2);
  await output(2).getByText('Restarted the kernel.').waitFor();
  const told = await output(2).innerText();
  assert.match(told, /It kept \d+ names/);
  assert.match(told, /file\s+the open file `\/dev\/null`/);

  await page.run(3);
  await output(3).getByText('12.0').waitFor();
  await page.until(async () => /double\(x\)\.sum/.test(await page.tab('time').innerText()));
  assert.match(await output(1).innerText(), new RegExp(`^${await page.evaluate('os.getpid()')} `));

  // A cell that runs for hours: the panel asks first, and the variables are there afterwards.
  await page.page.locator('.jp-Notebook .jp-Cell').nth(3).locator('.cm-content').click();
  await page.page.keyboard.press('Control+Enter');
  await page.page.waitForFunction(() => {
    const prompts = document.querySelectorAll('.jp-Notebook .jp-Cell .jp-InputPrompt');
    return prompts[3]?.textContent.includes('*');
  });
  await page.panel.getByRole('button', { name: 'Restart…' }).click();
  await page.panel.getByText('End the running cell').waitFor();
  await page.panel.getByRole('button', { name: 'Restart', exact: true }).click();
  await page.panel.getByRole('button', { name: 'Restart…' }).waitFor();
  assert.equal(await page.evaluate('float(x.sum())'), '6.0');
  if (process.env.PERSPEX_LOOK) {
    await page.page.screenshot({ path: process.env.PERSPEX_LOOK });
  }

  assert.deepEqual(page.ownErrors(), []);
  await page.page.context().close();
});
