/**
 * Takes the pictures of README.md, docs/panel.md and docs/widgets.md: `npm run pictures`, with
 * `panel`, `widgets`, `arrays`, `devices` or `story` behind it only some of them. Colours are few, so that files are small.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEVICES, SHARDED, STALE, TOUR, WIDGETS } from './notebooks.mjs';
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
  const picture = async (name, most) => {
    await page.page.mouse.move(0, 0);
    await page.page.waitForTimeout(1200);
    const path = `${DOCS}${name}.png`;
    await page.page.screenshot({ path });
    checkSize(path, most);
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
  // The whole session, from its first cell.
  await page.page.setViewportSize({ width: 1200, height: 1100 });
  await page.page.locator('.jp-Notebook .jp-Cell').first().scrollIntoViewIfNeeded();
  await picture('session', 250_000);
  await page.page.setViewportSize({ width: 1200, height: 680 });
  await page.run(TOUR.length);
  await page.idle();
  await page.page.waitForTimeout(1200);
  await page.page
    .locator('.jp-Notebook .jp-Cell')
    .nth(2)
    .evaluate(cell => cell.scrollIntoView());
  // The tables by line are in the picture of the session.
  await page
    .tab('time')
    .getByRole('heading', { name: 'Device time by function' })
    .evaluate(heading => heading.scrollIntoView());
  await picture('panel-time');
  await page.showPanel('keys');
  await picture('panel-keys');
  await page.theme('JupyterLab Dark');
  await page.showPanel('memory');
  await picture('panel-memory');
  await page.showPanel('cache');
  await page.tab('cache').getByRole('button', { name: 'energy' }).first().click();
  await picture('panel-cache');
  await page.theme('JupyterLab Light');
  await page.showPanel('program');
  await page.tab('program').getByText('scan').filter({ visible: true }).first().waitFor();
  await page.tab('program').getByRole('button', { name: 'Open in a tab' }).click();
  await page.command('application:toggle-right-area');
  await page.command('application:set-mode', { mode: 'single-document' });
  await page.page.setViewportSize({ width: 1440, height: 540 });
  // What belongs to this line is marked in all forms.
  await page.page
    .locator('.pspx-page .pspx-program-pane')
    .first()
    .getByText('moved = jnp.tanh')
    .click();
  await picture('panel-program');
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

async function arrays() {
  server.write('sharded.ipynb', SHARDED);
  const context = await chromium.newContext({ viewport: { width: 1000, height: 1000 } });
  const page = new Page(await context.newPage(), server, 'lab');
  await page.open('sharded.ipynb');
  await page.command('application:toggle-left-area');
  for (let i = 1; i <= SHARDED.length; i++) {
    await page.run(i);
  }
  await page.page.waitForTimeout(500);
  const path = `${DOCS}arrays-sharded.png`;
  const cells = page.page.locator('.jp-Notebook .jp-Cell');
  const from = await cells.first().boundingBox();
  const to = await cells.nth(SHARDED.length - 1).boundingBox();
  await page.page.screenshot({
    path,
    clip: { x: from.x, y: from.y, width: from.width, height: to.y + to.height - from.y }
  });
  checkSize(path);
}

async function devices() {
  server.write('devices.ipynb', DEVICES);
  const context = await chromium.newContext({ viewport: { width: 1000, height: 880 } });
  const page = new Page(await context.newPage(), server, 'lab');
  await page.open('devices.ipynb');
  await page.command('application:toggle-left-area');
  await page.showPanel('devices');
  for (let i = 1; i <= DEVICES.length; i++) {
    await page.run(i);
    await page.idle();
  }
  await page.tab('devices').getByText('the last process ended').waitFor();
  await page.page.mouse.move(0, 0);
  await page.page.waitForTimeout(1500);
  const path = `${DOCS}panel-devices.png`;
  await page.panel.screenshot({ path });
  checkSize(path);
}

/** The picture that moves: a stale capture is told of, and a line leads to its equations. */
async function story() {
  server.write('story.ipynb', STALE);
  const context = await chromium.newContext({ viewport: { width: 1120, height: 600 } });
  const page = new Page(await context.newPage(), server, 'lab');
  const folder = mkdtempSync(join(tmpdir(), 'perspex-story-'));
  const frames = [];
  const frame = async milliseconds => {
    await page.page.waitForTimeout(700);
    const path = join(folder, `${frames.length}.png`);
    await page.page.screenshot({ path });
    frames.push(`${path}=${milliseconds}`);
  };
  await page.open('story.ipynb');
  await page.command('application:toggle-left-area');
  await page.showPanel('program');
  await page.run(1);
  await page.run(2);
  await page.idle();
  await page.page.mouse.move(0, 0);
  await frame(1500);
  await page.run(3);
  await frame(1200);
  await page.run(4);
  await page.idle();
  await page.page.locator('.jp-Notebook .jp-Cell').nth(3).scrollIntoViewIfNeeded();
  await frame(4000);
  await page.tab('program').getByRole('button', { name: 'Open in a tab' }).click();
  await page.command('application:toggle-right-area');
  await page.command('application:set-mode', { mode: 'single-document' });
  const panes = page.page.locator('.pspx-page .pspx-program-pane');
  for (const line of ['slope = jnp.cos', 'return x - rate']) {
    await panes.first().getByText(line).hover();
    await frame(2200);
  }
  await context.close();
  const script = new URL('animate.py', import.meta.url).pathname;
  const python = new URL('../../.venv/bin/python', import.meta.url).pathname;
  const path = `${DOCS}story.gif`;
  spawnSync(python, [script, path, ...frames], { stdio: 'inherit' });
  rmSync(folder, { recursive: true });
  checkSize(path, 400_000);
}

function checkSize(path, most = MOST) {
  if (statSync(path).size > most) {
    console.error(`${path} has more than ${most} bytes.`);
  }
}

try {
  const [wanted] = process.argv.slice(2);
  const parts = { panel, widgets, arrays, devices, story };
  for (const [name, take] of Object.entries(parts)) {
    if (!wanted || wanted === name) {
      await take();
    }
  }
} finally {
  await chromium.close();
  await server.stop();
}
