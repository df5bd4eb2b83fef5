/** Numbers with units, as the table of examples has them that Python reads, too. */

import { expect, test } from 'vitest';
import examples from '../../tests/data/units.json';
import { count, duration, size } from '../src/views/units';

const number = (given: string | number | null): number | null =>
  given === null ? null : Number(String(given).replace('inf', 'Infinity'));

test.each([
  ['bytes', size],
  ['seconds', duration],
  ['counts', count]
] as const)('%s', (name, written) => {
  expect(examples[name].length).toBeGreaterThan(10);
  for (const [given, text] of examples[name]) {
    expect([given, written(number(given))]).toEqual([given, text]);
  }
});

test('undefined is no number', () => {
  expect([size(undefined), duration(undefined), count(undefined)]).toEqual(['–', '–', '–']);
});
