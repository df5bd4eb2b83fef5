/**
 * Walks docs/tutorial.md as a new user does, in JupyterLab, from the card of the Launcher to the
 * panel, and compares what each cell shows with what the page says: `npm run hour`. With `pictures`
 * behind it, it also takes the pictures of the page.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Page } from './pages.mjs';
import { PYTHON, browser, serve } from './server.mjs';

const DOCS = new URL('../../docs/', import.meta.url).pathname;
const AXE = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const MOST = 100_000;
const FEWER_COLOURS = `
import sys
from PIL import Image
Image.open(sys.argv[1]).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(sys.argv[1], optimize=True)
`;
const takes = process.argv.includes('pictures');
const plain = text => text.replace(/\s+/g, '');
let failed = 0;

function check(holds, says) {
  console.log(`${holds ? 'ok    ' : 'FAILED'}  ${says}`);
  failed += holds ? 0 : 1;
}

/** The cells of the page, each with what the page says that it shows. */
const cells = [];
for (const [, kind, text] of readFileSync(join(DOCS, 'tutorial.md'), 'utf8').matchAll(
  /^```(\w+)\n([^]*?)^```$/gm
)) {
  if (kind === 'python') {
    cells.push({ source: text.trimEnd(), shows: '' });
  } else if (kind === 'text') {
    cells.at(-1).shows = text;
  }
}

const doctor = spawnSync(PYTHON, ['-m', 'perspex_command', 'doctor'], { encoding: 'utf8' });
check(doctor.stdout.includes('Perspex can be used.'), 'perspex doctor');
const server = await serve();
const chromium = await browser();
try {
  const context = await chromium.newContext({ viewport: { width: 1000, height: 640 } });
  const page = new Page(await context.newPage(), server, 'lab');
  const picture = async name => {
    if (!takes) {
      return;
    }
    await page.page.mouse.move(0, 0);
    await page.page.waitForTimeout(1200);
    const path = `${DOCS}tutorial-${name}.png`;
    await page.page.screenshot({ path });
    spawnSync(PYTHON, ['-c', FEWER_COLOURS, path], { stdio: 'inherit' });
    check(statSync(path).size < MOST, `${path} has ${statSync(path).size} bytes`);
  };
  await page.page.goto(`${server.url}/lab?reset`);
  const card = page.page.locator('.jp-LauncherCard', { hasText: 'Getting started' });
  await card.waitFor();
  check(
    await page.page.locator('.jp-LauncherCard[title="Perspex"]').first().isVisible(),
    'the card Perspex'
  );
  await page.command('application:toggle-left-area');
  await picture('launcher');
  await card.click();
  await page.ready();
  const all = page.page.locator('.jp-Notebook .jp-Cell');
  const sources = await page.page.evaluate(() =>
    [...window.jupyterapp.shell.currentWidget.content.widgets].map(cell => [
      cell.model.type,
      cell.model.sharedModel.source
    ])
  );
  const code = sources.flatMap(([kind, source], place) =>
    kind === 'code' ? [[place, source]] : []
  );
  check(
    JSON.stringify(code.map(([, source]) => source)) === JSON.stringify(cells.map(c => c.source)),
    `the notebook has the ${cells.length} cells of the page`
  );
  const shown = place => all.nth(place).locator('.jp-Cell-outputArea').innerText();
  let clocks = 0;
  for (const [number, [place, source]] of code.entries()) {
    await page.run(place + 1);
    await page.idle();
    const { shows } = cells[number];
    const holds = () => shown(place).then(text => plain(text).includes(plain(shows)));
    if (shows) {
      await page.until(holds).catch(() => undefined);
    }
    check(
      await holds(),
      `${source.split('\n')[0]}  ->  ${shows.split('\n')[0] || '(no output to compare)'}`
    );
    clocks += await all.nth(place).getByText('compile').count();
    if (source.startsWith('%%jit\ncentred')) {
      await page.idle();
      await picture('jit');
    }
    if (source.startsWith('value = update')) {
      const notice = plain(await shown(place));
      check(
        notice.includes('rate') && notice.includes('retrace'),
        `the notice: ${await shown(place)}`
      );
      await all.nth(place + 1).evaluate(cell => cell.scrollIntoView({ block: 'end' }));
      await picture('stale');
    }
    if (source.startsWith('%jaxpr')) {
      await page.showPanel('program');
      const program = page.tab('program');
      await program.getByRole('button', { name: 'Open in a tab' }).waitFor();
      check((await program.innerText()).includes('step'), 'the panel has `step`');
      await program.getByRole('button', { name: /^step/ }).first().click();
      const pane = program.locator('.pspx-program-box').filter({ visible: true }).first();
      await pane.getByText('mul').first().waitFor();
      const { height } = await pane.boundingBox();
      check(height > 120, `a program has ${height} pixels in a window of 1,000 by 640`);
      await picture('panel');
      for (const tab of ['program', 'cache', 'time', 'memory', 'devices', 'keys']) {
        await page.showPanel(tab);
        await page.page.waitForTimeout(500);
        const found = await page.violations(AXE);
        check(found.length === 0, `axe finds nothing in the tab ${tab}: ${found.join('; ')}`);
        const wide = await page.tab(tab).evaluate(node => node.scrollWidth - node.clientWidth);
        check(wide <= 0, `the tab ${tab} fits its width: ${wide}`);
      }
      await page.command('application:toggle-right-area');
    }
  }
  check(clocks > 0, 'the clock stands below a cell that compiles');
  check(page.ownErrors().length === 0, `no errors of the panel: ${page.ownErrors()}`);
} finally {
  await chromium.close();
  await server.stop();
}
console.log(`hour: ${failed} failures`);
process.exit(failed ? 1 : 0);
