/**
 * Tests the panel and the widgets in a browser, in JupyterLab and in Notebook 7, on a real kernel;
 * where there is no Chromium, it says so. `npm run pictures` takes the pictures of the documentation instead.
 */

import { spawnSync } from 'node:child_process';
import { missing } from './server.mjs';

const reason = missing();
if (reason) {
  console.log(`panel: ${reason}, so the panel was not tested in a browser`);
} else {
  const files = ['panel.test.mjs', 'long.test.mjs', 'widgets.test.mjs'].map(
    name => new URL(name, import.meta.url).pathname
  );
  // One after the other: each has a server, kernels and a browser.
  const options = ['--test', '--test-reporter=spec', '--test-concurrency=1'];
  const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' });
  process.exit(status ?? 1);
}
