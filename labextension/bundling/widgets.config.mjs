// Bundles each widget as one ES module that imports nothing, as anywidget takes it. Rolldown comes with
// Vitest and writes plain modules; the panel's Rspack would put its own module loader around them.
import { readFileSync } from 'node:fs';
import { defineConfig } from 'rolldown';

const NAMES = ['cache', 'keys', 'program', 'timings'];

/** The licence of the library that lays out graphs; its authors ask that each copy has it. */
const DAGRE = readFileSync(
  new URL('../node_modules/@dagrejs/dagre/LICENSE', import.meta.url),
  'utf8'
);

export default NAMES.map(name =>
  defineConfig({
    input: `src/widgets/${name}.ts`,
    platform: 'browser',
    output: {
      file: `../magics/perspex_magics/widgets/static/${name}.js`,
      format: 'esm',
      minify: true,
      comments: false,
      postBanner: name === 'program' ? `/*! @dagrejs/dagre\n${DAGRE}*/` : ''
    }
  })
);
