/**
 * Checks pages of the built site with axe, in both themes, what a first visit loads, and that the
 * search finds something, from a server and from a folder: `npm run site`.
 */

import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';
import { browser } from './server.mjs';

const SITE = new URL('../../build/site/', import.meta.url).pathname;
const AXE = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const PAGES = [
  'index.html',
  'tutorial.html',
  'howto/index.html',
  'howto/stop-recompiling.html',
  'reference/index.html',
  'reference/perspex.numpy/index.html',
  'reference/perspex.numpy/transcendental.html',
  'reference/errors/TracerBoolConversionError.html',
  'reference/options.html',
  'gallery/index.html',
  'gallery/quickstart.html',
  'performance.html',
  'comparison.html'
];
// What a first visit may load, as a server that does not compress sends it.
const MOST = 300_000;
const KINDS = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml'
};

if (!existsSync(join(SITE, 'index.html'))) {
  console.error('site: make docs comes first');
  process.exit(1);
}
const server = createServer((request, response) => {
  const path = join(SITE, normalize(new URL(request.url, 'http://site').pathname));
  if (!path.startsWith(SITE) || !existsSync(path) || statSync(path).isDirectory()) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'Content-Type': KINDS[extname(path)] ?? 'application/octet-stream' });
  createReadStream(path).pipe(response);
});
await new Promise(ready => server.listen(0, '127.0.0.1', ready));
const origin = `http://127.0.0.1:${server.address().port}/`;
const chromium = await browser();
let failed = 0;

try {
  for (const colorScheme of ['light', 'dark']) {
    const context = await chromium.newContext({
      colorScheme,
      viewport: { width: 1300, height: 900 }
    });
    for (const name of PAGES) {
      const page = await context.newPage();
      const loaded = [];
      page.on('request', request => loaded.push(request.url()));
      await page.goto(origin + name, { waitUntil: 'networkidle' });
      const outside = loaded.filter(url => !url.startsWith(origin) && !url.startsWith('data:'));
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      for (const { id, help, nodes } of violations) {
        console.error(`${name} (${colorScheme}): ${id}: ${help}, ${nodes.length} times`);
        for (const { html, any } of nodes.slice(0, 4)) {
          console.error(`    ${html.slice(0, 150)} ${any[0]?.message ?? ''}`);
        }
      }
      for (const url of outside) {
        console.error(`${name}: loads ${url} from elsewhere`);
      }
      failed += violations.length + outside.length;
      if (name === 'index.html' && colorScheme === 'light') {
        const files = loaded
          .filter(url => url.startsWith(origin))
          .map(url => join(SITE, new URL(url).pathname));
        const bytes = files.map(file => readFileSync(file));
        const raw = bytes.reduce((sum, file) => sum + file.length, 0);
        const sent = bytes.reduce((sum, file) => sum + gzipSync(file).length, 0);
        console.log(
          `site: the first page loads ${files.length} files, ${sent} bytes compressed, ${raw} as they are`
        );
        failed += raw > MOST ? 1 : 0;
      }
      await page.close();
    }
    await context.close();
  }
  for (const start of [origin, `file://${SITE}`]) {
    const page = await chromium.newPage();
    await page.goto(`${start}howto/index.html`);
    await page.locator('.md-search__input').click();
    await page.locator('.md-search__input').pressSequentially('jaxpr');
    const found = page.locator('.md-search-result__link');
    try {
      await found.first().waitFor({ timeout: 60_000 });
      const address = await found.first().getAttribute('href');
      await page.goto(new URL(address, page.url()).href);
      console.log(`site: the search leads to ${await page.title()}`);
    } catch (error) {
      console.error(`site: the search finds nothing at ${start}: ${error.message}`);
      failed += 1;
    }
    await page.close();
  }
} finally {
  await chromium.close();
  server.close();
}
console.log(`site: ${2 * PAGES.length} pages looked at, ${failed} failures`);
process.exit(failed ? 1 : 0);
