/**
 * Takes the pictures of docs/panel.md: `npm run pictures`. Colours are few, so that files are small.
 */

import { statSync } from 'node:fs';
import { TOUR } from './notebooks.mjs';
import { Page } from './pages.mjs';
import { browser, serve } from './server.mjs';

const DOCS = new URL('../../docs/', import.meta.url).pathname;
const MOST = 150_000;

const server = await serve();
const chromium = await browser();
try {
  server.write('tour.ipynb', TOUR);
  const context = await chromium.newContext({ viewport: { width: 1200, height: 680 } });
  const page = new Page(await context.newPage(), server, 'lab');
  const picture = async name => {
    await page.page.waitForTimeout(1200);
    const path = `${DOCS}panel-${name}.png`;
    await page.page.screenshot({ path });
    if (statSync(path).size > MOST) {
      console.error(`${path} has more than ${MOST} bytes.`);
    }
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
} finally {
  await chromium.close();
  await server.stop();
}
