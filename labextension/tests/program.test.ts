/**
 * Differences of listings, against the length of the longest common subsequence by the textbook, and
 * what the view of a program makes of a document.
 */

import { expect, test, vi } from 'vitest';
import { editsOf, nameless } from '../src/views/program/difference';

import { programView } from '../src/views/program/view';
import { ProgramGraph } from '../src/views/program/graph';
import { rowsOf } from '../src/views/program/rows';
import type { LayOut } from '../src/views/layout';
import { document as program } from './rows';

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
    const edits = editsOf(before, now);
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
  const edits = editsOf(before, now);
  expect(edits.filter(one => one.kind === 'gone').length).toBe(3000);
  expect(edits.filter(one => one.kind === 'new').length).toBe(3000);
});

test('names of variables make no difference, operations and literals do', () => {
  const same = (form: 'jaxpr' | 'stablehlo' | 'hlo', a: string, b: string) =>
    nameless(form, a) === nameless(form, b);
  expect(same('jaxpr', 'b:f32[3] = sin a', 'ba:f32[3] = sin c')).toBe(true);
  expect(same('jaxpr', '_:f32[3] = sin a', 'b:f32[3] = sin a')).toBe(true);
  expect(same('jaxpr', 'b:f32[3] = sin a', 'b:f32[3] = cos a')).toBe(false);
  expect(same('jaxpr', 'b:f32[3] = mul a 2.0:f32[]', 'b:f32[3] = mul a 3.0:f32[]')).toBe(false);
  expect(same('hlo', '%add.1 = f32[3] add(%a, %b)', '%add_2.7 = f32[3] add(%c, %d)')).toBe(true);
  expect(same('stablehlo', '%1 = stablehlo.sine %0', '%1:2 = stablehlo.sine %5#1')).toBe(true);
});

test('the lines of a listing have levels, links as lists, and what is invisible as escapes', () => {
  const rows = rowsOf(program().jaxpr);
  expect(rows.map(row => row.level)).toEqual([0, 1, 2, 2, 1]);
  expect(rows.map(row => row.fold)).toEqual([4, 2, 0, 0, 0]);
  expect(rows.map(row => row.links)).toEqual([[], [0], [1], [2], [0]]);
  expect(rows[2].text).toBe('    b = sin a');
  expect(rowsOf({ text: '', folds: [], links: [] })).toEqual([]);
  const odd = rowsOf({ text: 'a\u202eb\n\nc\u2028d', folds: [], links: [null, null, 7] }, 5, 1);
  expect(odd.map(row => row.text)).toEqual(['a\\u202eb', '', 'c\u2028d']);
  expect(odd.map(row => row.number)).toEqual(['5', '6', '7']);
  expect(odd.every(row => row.level === 1)).toBe(true);
});

/** Tells nobody of anything: nothing has a size here. */
class Watch {
  observe() {}
  disconnect() {}
}

test('a program is drawn line by line, and a graph is laid out only where it is in sight', async () => {
  vi.stubGlobal('ResizeObserver', Watch);
  const host = document.createElement('div');
  let laid = 0;
  const layOut: LayOut = nodes => {
    laid += 1;
    return { nodes: nodes.map(({ id }) => ({ id, x: 0, y: 0 })), edges: [], width: 1, height: 1 };
  };
  const view = programView(host, { layOut });
  view.update(program());
  const texts = (form: string) =>
    [...host.querySelectorAll(`[role="tree"][aria-label="${form}"] .pspx-program-text`)].map(
      one => one.textContent
    );
  expect(texts('Jaxpr')).toEqual(program().jaxpr.text.split('\n'));
  expect(texts('Source')).toEqual(['Cell In[3]', 'def f(x):', '  return sin(x) * 2']);
  expect(texts('Optimized HLO')).toEqual(['fusion']);
  expect(laid).toBe(0);
  host.querySelector<HTMLElement>('[data-form="graph"]')!.click();
  await Promise.resolve();
  expect(laid).toBe(1);
  expect(host.querySelectorAll('.pspx-program-node')).toHaveLength(1);
  // A click on a line inside of the loop shows the loop's program.
  const line = [...host.querySelectorAll<HTMLElement>('.pspx-program-line')].find(one =>
    one.textContent.includes('mul')
  )!;
  line.click();
  await Promise.resolve();
  const nodes = [...host.querySelectorAll('.pspx-program-node')];
  expect(nodes.map(node => node.classList.contains('pspx-program-pinned'))).toEqual([false, true]);
  expect(host.querySelector('.pspx-program-details')!.textContent).toMatch(
    /mul.*Cell In\[3\]:5.*3 FLOPs/
  );
  view.dispose();
  vi.unstubAllGlobals();
});

test.each([
  [-1, 200, ' · 150 of 200 equations, nearest to the first one'],
  [180, 200, ' · 150 of 200 equations, nearest to the pinned one'],
  [-1, 100, ' · 100 equations']
])('a graph around %i of %i equations says which it has', async (around, n, said) => {
  const equations = Array.from({ length: n }, (_, i) => ({
    primitive: 'sin',
    outputs: [],
    parent: -1,
    inputs: i ? [i - 1] : [],
    at: '',
    flops: null,
    bytes: null
  }));
  const layout = () => ({ nodes: [], edges: [], width: 1, height: 1 });
  const graph = new ProgramGraph(layout, { hover: () => undefined, choose: () => undefined });
  graph.show(equations, around);
  await Promise.resolve();
  expect(graph.path.querySelector('.pspx-muted')!.textContent).toBe(said);
});

test('forms that come later are put beside those that are there, which stay as they are', () => {
  vi.stubGlobal('ResizeObserver', Watch);
  const host = document.createElement('div');
  const view = programView(host, {});
  const { stablehlo, hlo, ...outline } = program();
  view.update(outline, outline);
  const box = (form: string) =>
    host.querySelector<HTMLElement>(`[role="tree"][aria-label="${form}"]`)!;
  const pinned = (form: string) =>
    [...box(form).querySelectorAll('.pspx-program-pinned')].map(one => one.textContent);
  expect(box('Optimized HLO').textContent).toBe('…');
  const [line] = [...box('Jaxpr').querySelectorAll<HTMLElement>('.pspx-program-line')].slice(2);
  line.click();
  view.complete({ stablehlo, hlo }, { stablehlo, hlo: { ...hlo, text: 'loop' } });
  expect(pinned('Jaxpr')).toEqual(['3    b = sin a']);
  expect(pinned('Optimized HLO')).toEqual(['1fusion']);
  expect(box('StableHLO').textContent).toBe('');
  [...host.querySelectorAll('button')].find(one => one.textContent === 'Difference')!.click();
  expect(host.querySelector('[role="status"]')!.textContent).toBe(
    'Changed lines: Source 0, Jaxpr 0, StableHLO 0, Optimized HLO 2'
  );
  view.dispose();
  vi.unstubAllGlobals();
});
