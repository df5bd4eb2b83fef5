/**
 * The server and the browser that the tests of one file share, and pages in them.
 */

import { after, before } from 'node:test';
import { Page } from './pages.mjs';
import { browser, serve } from './server.mjs';

/** Start both before the first test of a file, and stop them behind the last. */
export function rig() {
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
  return {
    get server() {
      return server;
    },
    get chromium() {
      return chromium;
    },
    /** A notebook in a page of its own; it is written first, if there are cells. */
    async open(app, name, cells, { kernel, width = 1500, height = 900 } = {}) {
      if (cells) {
        server.write(name, cells, kernel);
      }
      const context = await chromium.newContext({ viewport: { width, height } });
      const page = new Page(await context.newPage(), server, app);
      await page.open(name);
      return page;
    }
  };
}
