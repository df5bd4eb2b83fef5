// Writes `src/lesson.ts`: the cells of the notebook "Getting started", from the tutorial, and the
// picture of its card, which is that of the kernel.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const PAGE = new URL('../../docs/tutorial.md', import.meta.url);
const LOGO = new URL('../../kernel/kernelspec/logo-svg.svg', import.meta.url);
const OUT = new URL('../src/lesson.ts', import.meta.url);
// Who reads it has installed Perspex, and links of the site lead nowhere from a notebook.
const LEFT_OUT = ['Install', 'Read on'];

const sections = readFileSync(PAGE, 'utf8')
  .split(/^(?=## )/m)
  .filter(text => !LEFT_OUT.some(title => text.startsWith(`## ${title}\n`)));
const cells = [];
for (const [, text, kind, code] of sections
  .join('')
  .matchAll(/([^]*?)(?:^```(\w+)\n([^]*?)^```$|(?![^]))/gm)) {
  // The pictures show what the reader is looking at.
  const prose = text
    .replace(/!\[[^\]]+\]\([^)]+\)/g, '')
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .trim();
  if (prose) {
    cells.push(['markdown', prose]);
  }
  // What a cell shows is seen when it runs.
  if (kind && kind !== 'text') {
    cells.push(['code', code.trimEnd()]);
  }
}
const written = `/** Generated from \`docs/tutorial.md\` and the kernel's logo by \`npm run types\`. */
export const LESSON: [kind: 'code' | 'markdown', source: string][] = ${JSON.stringify(cells, null, 2)};
export const LOGO = ${JSON.stringify(`data:image/svg+xml,${encodeURIComponent(readFileSync(LOGO, 'utf8'))}`)};
`;
// Programs that run beside this one read the file.
if (!existsSync(OUT) || readFileSync(OUT, 'utf8') !== written) {
  writeFileSync(OUT, written);
}
