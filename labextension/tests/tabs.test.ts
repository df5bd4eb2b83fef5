/** What tabs say of rows. */

import { expect, test, vi } from 'vitest';
import { cacheView } from '../../magics/perspex_magics/widgets/static/cache.js';
import { coded } from '../../magics/perspex_magics/widgets/static/dom.js';
import type { KeyRow, LineRow, Place, ProgramRow } from '../src/contract';
import type { KernelModel } from '../src/model';
import { KeysTab } from '../src/tabs/keys';
import { MemoryTab } from '../src/tabs/memory';
import { TimeTab } from '../src/tabs/time';
import { buffer, memory } from './rows';

const page = { reveal: () => undefined } as unknown as ConstructorParameters<typeof KeysTab>[0];
const table = (rows: unknown[]) => ({ inOrder: () => rows, forgotten: 0, size: rows.length });
const modelOf = (tables: Record<string, unknown[]>, more = {}) =>
  ({
    tables: Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, table(rows)])),
    profiling: true,
    ...more
  }) as unknown as KernelModel;
const at = (text: string): Place => ({ text, cell: 'c', file: '', line: 1 });

const key = (id: string, text: string): KeyRow => ({
  row: 'key',
  id,
  order: Number(id),
  parent: null,
  function: 'split',
  expression: 'random.split(key)',
  names: [],
  at: at(text),
  calls: 1,
  keys: 2,
  makes: true,
  traced: false,
  reusedKeys: 0,
  reused: []
});

test.each([
  [[26], '26 keys were used more than once.', ['and 21 more keys']],
  [[6, 25], '31 keys were used more than once.', ['and 1 more key', 'and 20 more keys']],
  [[1, 0], '1 key was used more than once.', []],
  [[0], 'no key was used twice.', []]
])('of lines with %j reused keys all are counted', (numbers, summary, more) => {
  const tab = new KeysTab(page);
  const reuse = { key: 'k', uses: [{ function: 'normal', at: null }] };
  const rows = numbers.map((n, i) => ({
    ...key(String(i), `In[${i}]:1`),
    reusedKeys: n,
    reused: Array(Math.min(n, 20)).fill(reuse)
  }));
  tab.show(modelOf({ keys: rows }));
  expect(tab.node.textContent).toContain(summary);
  const said = [...tab.node.querySelectorAll('div.pspx-reuse.pspx-muted')].map(
    one => one.textContent
  );
  expect(said).toEqual(more);
});

test('a look at the memory that no cell made is no cell', () => {
  const tab = new MemoryTab(page);
  const time = new Date(2026, 0, 1, 9, 5, 7);
  const rows = [
    memory('1', 7_000, { count: null, time: time.getTime() / 1000 }),
    memory('2', 0, { count: 1 }),
    memory('3', 4_000, { count: 2 })
  ];
  tab.show(modelOf({ buffers: [], memory: rows }));
  const most = `7.00 kB at ${time.toLocaleTimeString()}`;
  expect(tab.node.querySelector('figcaption')!.textContent).toBe(`At most ${most}.`);
  const picture = tab.node.querySelector('svg')!;
  expect(picture.getAttribute('aria-label')).toBe(
    `Bytes alive at 3 times, at the ends of 2 cells among them: from 7.00 kB to 4.00 kB, at most ${most}`
  );
  picture.getBoundingClientRect = () => ({ left: 0, width: 300 }) as DOMRect;
  picture.dispatchEvent(new MouseEvent('pointermove', { clientX: 290 }));
  expect(tab.node.querySelector('figcaption')!.textContent).toBe('4.00 kB at the end of In[2]');
});

test('the dialog that asks before a variable is freed has room for its title', () => {
  const confirm = vi.fn().mockResolvedValue(false);
  const tab = new MemoryTab({ ...page, confirm });
  tab.show(modelOf({ buffers: [buffer('x'.repeat(200))], memory: [] }));
  tab.node.querySelector('button')!.click();
  expect(confirm.mock.calls[0][0]).toBe(`Free ${'x'.repeat(39)}…?`);
});

test('a line that made keys twice is one line', () => {
  const tab = new KeysTab(page);
  tab.show(modelOf({ keys: [key('1', 'In[1]:1'), key('2', 'In[4]:3'), key('3', 'In[4]:3')] }));
  expect(tab.node.textContent).toContain('2 lines made or used keys');
  tab.show(modelOf({ keys: [key('1', 'In[1]:1')] }));
  expect(tab.node.textContent).toContain('1 line made or used keys');
});

const program = (part: number, bound: 'memory' | 'arithmetic') =>
  ({
    row: 'program',
    id: `${part}`,
    name: 'f',
    signature: 'f32[3]',
    calls: 2,
    device: 0.5,
    roof: { flops: 1e9, intensity: 2, part, bound }
  }) as unknown as ProgramRow;

test.each([
  [0.001, 'memory', '<1% of peak bytes/s'],
  [0.174, 'memory', '17% of peak bytes/s'],
  [0.9, 'arithmetic', '90% of peak FLOP/s']
] as const)('%f of what the %s allows', (part, bound, text) => {
  const tab = new TimeTab(page);
  tab.show(modelOf({ cells: [], lines: [], programs: [program(part, bound)] }));
  const cells = [...tab.node.querySelectorAll('td .pspx-muted')].map(cell => cell.textContent);
  expect(cells).toEqual([text]);
});

test('the share of a function is its part of all functions', () => {
  const tab = new TimeTab(page);
  const programs = [6, 3, 1].map(device => ({ ...program(1, 'memory'), id: `${device}`, device }));
  tab.show(modelOf({ cells: [], lines: [], programs }));
  const bars = [...tab.node.querySelectorAll<HTMLElement>('td .pspx-share-own')];
  expect(bars.map(bar => bar.style.width)).toEqual(['60.00%', '30.00%', '10.00%']);
});

test('what the switch announced is taken back when it has come', async () => {
  const tab = new TimeTab(page);
  const profile = () => Promise.resolve({ ok: true, text: 'from the next cell on' });
  const model = modelOf({ cells: [], lines: [], programs: [] }, { profile });
  tab.show(model);
  tab.node.querySelector('input')!.dispatchEvent(new Event('change'));
  await new Promise(resolve => setTimeout(resolve));
  expect(tab.node.querySelector('[role="status"]')!.textContent).toBe('from the next cell on');
  const line = { id: '1', at: at('In[1]:2'), seconds: 1, shared: 0, runs: 1 } as unknown as LineRow;
  model.tables.lines = table([line]) as never;
  tab.show(model);
  expect(tab.node.querySelector('[role="status"]')!.textContent).toBe('');
});

test('what stands between backquotes is code, whatever it is', () => {
  const shown = coded('`<b>x</b>`: f32[3] -> f32[4], was `y');
  expect([...shown.querySelectorAll('code')].map(code => code.textContent)).toEqual([
    '<b>x</b>',
    'y'
  ]);
  expect(shown.textContent).toBe('<b>x</b>: f32[3] -> f32[4], was y');
  expect(shown.querySelector('b')).toBeNull();
  expect(coded('a'.repeat(50), 10).title).toBe('a'.repeat(50));
});

test('the cause of a recompilation is set as the card sets it', () => {
  const host = document.createElement('div');
  document.body.append(host);
  const view = cacheView(host, {});
  const miss = { cause: '`x`: f32[3] -> f32[4]', advice: '', seconds: 1, compiles: 2, here: 1 };
  view.update([
    {
      ...program(0, 'memory'),
      order: 1,
      at: null,
      found: 'xla',
      trace: 0,
      lower: 0,
      compile: 0,
      byXla: 0,
      size: 1,
      equations: 1,
      pinned: false,
      canShow: false,
      miss
    }
  ]);
  host.querySelector<HTMLButtonElement>('.pspx-cache-name')!.click();
  const why = [...host.querySelectorAll('dd')].find(dd => dd.textContent?.startsWith('x: f32'));
  expect(why?.querySelector('code')?.textContent).toBe('x');
  view.dispose();
});
