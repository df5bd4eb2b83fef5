// Bundles what `tsc` wrote for JupyterLab, without Python and without the network, and checks that
// the bundle is small.
const { execFileSync } = require('node:child_process');
const { readFileSync, readdirSync, statSync } = require('node:fs');
const { join, relative } = require('node:path');
const { gzipSync } = require('node:zlib');

const MOST = 75_000;
const root = join(__dirname, '..');
const out = join(root, 'dist');

execFileSync(
  process.execPath,
  [
    require.resolve('@jupyter/builder/lib/build-labextension.js'),
    '--core-package-file',
    require.resolve('@jupyterlab/core-meta/core.package.json'),
    root
  ],
  { cwd: root, stdio: ['ignore', process.env.VERBOSE ? 'inherit' : 'ignore', 'inherit'] }
);

function files(folder) {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

const sizes = files(out)
  .filter(path => /\.(js|css)$/.test(path))
  .map(path => [relative(out, path), gzipSync(readFileSync(path)).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`The panel: ${(total / 1000).toFixed(1)} kB gzipped in ${sizes.length} files.`);
if (total > MOST) {
  for (const [name, size] of sizes) {
    console.error(`${String(size).padStart(8)}  ${name}`);
  }
  console.error(`The panel must stay below ${MOST / 1000} kB gzipped.`);
  process.exit(1);
}
