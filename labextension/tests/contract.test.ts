/** What the tests take for the kernel's messages, and what the panel sends, fit the schema. */

import Ajv from 'ajv';
import { expect, test } from 'vitest';
import schema from '../../magics/perspex_magics/panel/schema.json';
import { Connection } from '../src/model/connection';
import { FakeKernel } from './fake';
import * as rows from './rows';

const ajv = new Ajv({ strict: false });
ajv.addSchema(schema, 'panel');
const fits = (name: string, value: unknown) => {
  const check = ajv.getSchema(`panel#/definitions/${name}`)!;
  return check(value) ? [] : check.errors;
};

test('rows and messages of the tests are those of the schema', () => {
  const all = [
    rows.program('a', {
      miss: { cause: 'x', advice: '', seconds: 1, compiles: 2, here: 1 },
      at: null
    }),
    rows.cell('a'),
    rows.buffer('a'),
    rows.memory('a', 1),
    rows.memory('b', 1, { count: null }),
    rows.key('a', {
      reusedKeys: 1,
      reused: [{ key: 'k', uses: [{ function: 'normal', at: null }] }]
    }),
    rows.line('a'),
    rows.device(0, { used: 1, peak: 2, limit: 3, piece: 1 }),
    rows.placement('x'),
    rows.exchange('a', { at: null }),
    rows.engine(0),
    rows.engine(1, { alive: false, memory: null, bytes: null, began: null, ended: null })
  ];
  for (const row of all) {
    expect(fits('Row', row)).toEqual([]);
  }
  expect(fits('FromKernel', rows.hello())).toEqual([]);
  expect(fits('FromKernel', rows.changes(1, 'cells', all))).toEqual([]);
  expect(fits('FromKernel', { ...rows.hello(), session: 1 })).not.toEqual([]);
  const document = rows.document();
  expect(fits('Program', document)).toEqual([]);
  expect(fits('Program', { ...document, jaxpr: [] })).not.toEqual([]);
  const { stablehlo, hlo, ...outline } = document;
  expect(fits('Program', outline)).toEqual([]);
  expect(fits('Compiled', { stablehlo, hlo })).toEqual([]);
});

test('what the panel sends is what the schema lets it send', async () => {
  const kernel = new FakeKernel();
  const connection = new Connection(kernel, { id: 'page', renew: () => 'other' });
  connection.look('panel', ['cells', 'programs']);
  await kernel.info;
  kernel.comm.say(rows.hello());
  connection.look('panel', ['keys']);
  const { session } = connection;
  void session.ask({ what: 'evict', id: 'a' });
  void session.profile(true);
  void session.program('a').catch(() => undefined);
  kernel.comm.say(rows.changes(5, 'keys', []));
  expect(kernel.comm.sent.map(message => ('type' in message ? message.type : 'open'))).toEqual([
    'open',
    'watch',
    'watch',
    'ask',
    'ask',
    'ask',
    'resync'
  ]);
  for (const message of kernel.comm.sent) {
    expect(fits('FromPanel', message)).toEqual([]);
  }
});
