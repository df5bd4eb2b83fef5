// Writes `src/contract.ts`, the types of the messages, from the schema that Python writes.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';

const SCHEMA = new URL('../../magics/perspex_magics/panel/schema.json', import.meta.url);
const OUT = new URL('../src/contract.ts', import.meta.url);

const { constants, ...schema } = JSON.parse(readFileSync(SCHEMA, 'utf8'));
const types = await compile(schema, 'PanelMessages', {
  additionalProperties: false,
  bannerComment: '/** Generated from `perspex_magics/panel/schema.json` by `npm run types`. */',
  style: { singleQuote: true, printWidth: 100, trailingComma: 'none' }
});
const values = Object.entries(constants).map(
  ([name, value]) => `export const ${name} = ${JSON.stringify(value)} as const;\n`
);
const text = `${types}\n${values.join('')}`;
// Programs that run beside this one read the file.
if (!existsSync(OUT) || readFileSync(OUT, 'utf8') !== text) {
  writeFileSync(OUT, text);
}
