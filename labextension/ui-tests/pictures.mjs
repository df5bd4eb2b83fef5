/**
 * Takes the pictures of docs/panel.md and docs/widgets.md: `npm run pictures`, with `panel` or
 * `widgets` behind it only some of them. Colours are few, so that files are small.
 */

import { statSync } from 'node:fs';
import { TOUR, WIDGETS } from './notebooks.mjs';
import { Page } from './pages.mjs';
import { browser, serve } from './server.mjs';

const DOCS = new URL('../../docs/', import.meta.url).pathname;
const MOST = 150_000;

const server = await serve();
const chromium = await browser();

async function panel() {
  server.write('tour.ipynb', TOUR);
  const context = await chromium.newContext({ viewport: { width: 1200, height: 680 } });
  const page = new Page(await context.newPage(), server, 'lab');
  const picture = async name => {
    await page.page.waitForTimeout(1200);
    const path = `${DOCS}panel-${name}.png`;
    await page.page.screenshot({ path });
    checkSize(path);
  };
  await page.open('tour.ipynb');
  await page.command('application:toggle-left-area');
  await page.showPanel('time');
  await page.run(1);
  await page.panel.getByLabel('Measure device time by line').click();
  await page.panel.getByText('from the next cell on').waitFor();
  for (let i = 2; i <= TOUR.length; i++) {
    await page.run(i);
  }
  await page.run(TOUR.length);
  await picture('time');
  await page.showPanel('keys');
  await picture('keys');
  await page.theme('JupyterLab Dark');
  await page.showPanel('memory');
  await picture('memory');
  await page.showPanel('cache');
  await page.tab('cache').getByRole('button', { name: 'energy' }).first().click();
  await picture('cache');
  await page.theme('JupyterLab Light');
  await page.showPanel('program');
  await page.tab('program').getByText('scan').filter({ visible: true }).first().waitFor();
  await page.tab('program').getByRole('button', { name: 'Open in a tab' }).click();
  await page.command('application:toggle-right-area');
  await page.page.setViewportSize({ width: 1440, height: 540 });
  await picture('program');
}

async function widgets() {
  server.write('widgets.ipynb', WIDGETS);
  const context = await chromium.newContext({ viewport: { width: 1200, height: 4200 } });
  const page = new Page(await context.newPage(), server, 'lab');
  const picture = async (name, element) => {
    const path = `${DOCS}widgets-${name}.png`;
    await page.page.waitForTimeout(500);
    await element.screenshot({ path });
    checkSize(path);
  };
  await page.open('widgets.ipynb');
  await page.command('application:toggle-left-area');
  for (let i = 1; i <= WIDGETS.length; i++) {
    await page.run(i);
  }
  const keys = page.page.locator('.jp-Notebook .pspx-keys');
  await keys.getByRole('button', { name: 'Split' }).click();
  await keys.getByRole('treeitem', { name: 'split[1]' }).waitFor();
  await keys.getByRole('treeitem', { name: /^sub/ }).click();
  await keys.getByText('k = sub', { exact: true }).waitFor();
  await keys.getByLabel('Number to fold in').fill('1');
  await keys.getByRole('button', { name: 'Fold in' }).click();
  await keys.getByText('The same bits as').waitFor();
  await keys.getByText('Preview of').click();
  await keys.getByRole('img', { name: 'Histogram' }).waitFor();
  await picture('keys', keys);
  const program = page.page.locator('.jp-Notebook .pspx-program').nth(2);
  for (const name of ['Source', 'Optimized HLO', 'Graph', 'Difference']) {
    await program.getByRole('button', { name, exact: true }).click();
  }
  await program
    .getByRole('group', { name: 'Graph' })
    .getByRole('button', { name: /^scan/ })
    .click();
  await picture('show', program);
}

function checkSize(path) {
  if (statSync(path).size > MOST) {
    console.error(`${path} has more than ${MOST} bytes.`);
  }
}

try {
  const [wanted] = process.argv.slice(2);
  if (wanted !== 'widgets') {
    await panel();
  }
  if (wanted !== 'panel') {
    await widgets();
  }
} finally {
  await chromium.close();
  await server.stop();
}
