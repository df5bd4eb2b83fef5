/** Differences of listings, against the length of the longest common subsequence by the textbook. */

import { expect, test } from 'vitest';
import {
  programEdits,
  programNameless
} from '../../magics/perspex_magics/widgets/static/program_difference.js';

/** Of two lists, by dynamic programming. */
function common(a: string[], b: string[]): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i][j] =
        a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table[0][0];
}

let state = 1;
const random = (n: number) => {
  state = (state * 48271) % 2147483647;
  return state % n;
};
const list = () => Array.from({ length: random(10) }, () => 'abcd'[random(4)]);

test('edits make the list now of the list before, and are as few as can be', () => {
  for (let turn = 0; turn < 1000; turn += 1) {
    const [before, now] = [list(), list()];
    const edits = programEdits(before, now);
    const kept = edits.filter(one => one.kind === 'same').length;
    const gone = edits.filter(one => one.kind === 'gone').map(one => one.index);
    expect(edits.filter(one => one.kind !== 'gone').map(one => now[one.index])).toEqual(now);
    expect(kept).toBe(common(before, now));
    expect(gone.length).toBe(before.length - kept);
    expect(gone).toEqual([...gone].sort((x, y) => x - y));
  }
});

test('lists that have nothing in common are all gone and all new', () => {
  const before = Array.from({ length: 3000 }, (_, i) => `a${i}`);
  const now = Array.from({ length: 3000 }, (_, i) => `b${i}`);
  const edits = programEdits(before, now);
  expect(edits.filter(one => one.kind === 'gone').length).toBe(3000);
  expect(edits.filter(one => one.kind === 'new').length).toBe(3000);
});

test('names of variables make no difference, operations and literals do', () => {
  const same = (form: 'jaxpr' | 'stablehlo' | 'hlo', a: string, b: string) =>
    programNameless(form, a) === programNameless(form, b);
  expect(same('jaxpr', 'b:f32[3] = sin a', 'ba:f32[3] = sin c')).toBe(true);
  expect(same('jaxpr', '_:f32[3] = sin a', 'b:f32[3] = sin a')).toBe(true);
  expect(same('jaxpr', 'b:f32[3] = sin a', 'b:f32[3] = cos a')).toBe(false);
  expect(same('jaxpr', 'b:f32[3] = mul a 2.0:f32[]', 'b:f32[3] = mul a 3.0:f32[]')).toBe(false);
  expect(same('hlo', '%add.1 = f32[3] add(%a, %b)', '%add_2.7 = f32[3] add(%c, %d)')).toBe(true);
  expect(same('stablehlo', '%1 = stablehlo.sine %0', '%1:2 = stablehlo.sine %5#1')).toBe(true);
});
