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
  const names = ['panel', 'long', 'widgets', 'bare', 'exported', 'restart'];
  const files = names.map(name => new URL(`${name}.test.mjs`, import.meta.url).pathname);
  // The longest first. Each has a server, kernels and a browser of its own, which it mostly waits for.
  const options = ['--test', '--test-reporter=spec', '--test-concurrency=2'];
  const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' });
  process.exit(status ?? 1);
}
