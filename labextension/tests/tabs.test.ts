/** What tabs say of rows. */

import { expect, test, vi } from 'vitest';
import { cacheView } from '../src/views/cache/view';
import { coded } from '../src/views/dom';
import type { Place } from '../src/contract';
import { DevicesTab } from '../src/tabs/devices';
import { KeysTab } from '../src/tabs/keys';
import { MemoryTab } from '../src/tabs/memory';
import { TimeTab } from '../src/tabs/time';
import { page, sessionOf } from './fake';
import { buffer, cell, changes, key as keyRow, line, memory, program as programRow } from './rows';

const at = (text: string): Place => ({ text, cell: 'c', file: '', line: 1 });

const key = (id: string, text: string) =>
  keyRow(id, { order: Number(id), at: at(text), names: [] });

test.each([
  [[26], '26 keys were reused.', ['and 21 more keys']],
  [[6, 25], '31 keys were reused.', ['and 1 more key', 'and 20 more keys']],
  [[1, 0], '1 key was reused.', []],
  [[0], 'no key was reused.', []]
])('of lines with %j reused keys all are counted', (numbers, summary, more) => {
  const tab = new KeysTab(page);
  const reuse = { key: 'k', uses: [{ function: 'normal', at: null }] };
  const rows = numbers.map((n, i) => ({
    ...key(String(i), `In[${i}]:1`),
    reusedKeys: n,
    reused: Array(Math.min(n, 20)).fill(reuse)
  }));
  tab.show(sessionOf({ keys: rows }).session);
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
  tab.show(sessionOf({ buffers: [], memory: rows }).session);
  const most = `6.84 KiB at ${time.toLocaleTimeString()}`;
  expect(tab.node.querySelector('figcaption')!.textContent).toBe(`Peak: ${most}`);
  const picture = tab.node.querySelector('svg')!;
  expect(picture.getAttribute('aria-label')).toBe(
    `Bytes alive at 3 times, 2 of them at the end of a cell: first 6.84 KiB, last 3.91 KiB, peak ${most}`
  );
  picture.getBoundingClientRect = () => ({ left: 0, width: 300 }) as DOMRect;
  picture.dispatchEvent(new MouseEvent('pointermove', { clientX: 290 }));
  expect(tab.node.querySelector('figcaption')!.textContent).toBe('3.91 KiB at the end of In[2]');
});

test('the dialog that asks before a variable is freed has room for its title', () => {
  const confirm = vi.fn().mockResolvedValue(false);
  const tab = new MemoryTab({ ...page, confirm });
  tab.show(sessionOf({ buffers: [buffer('x'.repeat(200))], memory: [] }).session);
  tab.node.querySelector('button')!.click();
  expect(confirm.mock.calls[0][0]).toBe(`Free ${'x'.repeat(39)}…?`);
});

test('a line that made keys twice is one line', () => {
  const tab = new KeysTab(page);
  tab.show(
    sessionOf({ keys: [key('1', 'In[1]:1'), key('2', 'In[4]:3'), key('3', 'In[4]:3')] }).session
  );
  expect(tab.node.textContent).toContain('2 lines made or used keys');
  tab.show(sessionOf({ keys: [key('1', 'In[1]:1')] }).session);
  expect(tab.node.textContent).toContain('1 line made or used keys');
});

const program = (part: number, bound: 'memory' | 'arithmetic') =>
  programRow(String(part), {
    name: 'f',
    calls: 2,
    device: 0.5,
    roof: { flops: 1e9, intensity: 2, part, bound }
  });

test.each([
  [0.001, 'memory', '<1% of peak bytes/s'],
  [0.174, 'memory', '17% of peak bytes/s'],
  [0.9, 'arithmetic', '90% of peak FLOP/s'],
  [4.77, 'arithmetic', '>100% of peak FLOP/s']
] as const)('%f of what the %s allows', (part, bound, text) => {
  const tab = new TimeTab(page);
  tab.show(sessionOf({ cells: [], lines: [], programs: [program(part, bound)] }).session);
  const cells = [...tab.node.querySelectorAll('td .pspx-muted')].map(cell => cell.textContent);
  expect(cells).toEqual([text]);
});

test('the share of a function is its part of all functions', () => {
  const tab = new TimeTab(page);
  const programs = [6, 3, 1].map(device => ({ ...program(1, 'memory'), id: `${device}`, device }));
  tab.show(sessionOf({ cells: [], lines: [], programs }).session);
  const bars = [...tab.node.querySelectorAll<HTMLElement>('td .pspx-share-own')];
  expect(bars.map(bar => bar.style.width)).toEqual(['60.00%', '30.00%', '10.00%']);
});

test('what the switch announced is taken back when it has come', async () => {
  const tab = new TimeTab(page);
  const { session } = sessionOf({}, { ok: true, text: 'from the next cell on' });
  tab.show(session);
  tab.node.querySelector('input')!.dispatchEvent(new Event('change'));
  await new Promise(resolve => setTimeout(resolve));
  expect(tab.node.querySelector('[role="status"]')!.textContent).toBe('from the next cell on');
  session.apply(changes(1, 'lines', [line('1', { at: at('In[1]:2') })], { reset: true }));
  tab.show(session);
  expect(tab.node.querySelector('[role="status"]')!.textContent).toBe('');
});

test('device times are those of the last profiled cell, with their number and total', () => {
  const tab = new TimeTab(page);
  const lines = [1, 2, 3].map(n => line(String(n), { seconds: n / 1000 }));
  tab.show(sessionOf({ lines }).session);
  expect(tab.node.querySelector('caption')!.textContent).toBe(
    'Device time per line, from the last profiled cell that ran it (3 lines, 6.00 ms total). ' +
      'Hatched: shares of fusions of several lines.'
  );
});

test('lines have their code, and bars of cells one scale', () => {
  const tab = new TimeTab(page);
  const cells = [1, 4, 2].map(wall => cell(String(wall), { wall, python: wall, head: `t${wall}` }));
  tab.show(sessionOf({ cells, lines: [line('1', { code: 'y = x @ w' })] }).session);
  expect(tab.node.querySelector('.pspx-line-code')!.textContent).toBe('y = x @ w');
  const list = tab.node.querySelector<HTMLElement>('[role="list"]')!;
  expect(list.style.getPropertyValue('--pspx-longest')).toBe('4');
  const heads = () =>
    [...list.querySelectorAll('.pspx-entry-head .pspx-code')].map(one => one.textContent);
  const wholes = [...list.querySelectorAll<HTMLElement>('.pspx-bar')].map(bar =>
    bar.style.getPropertyValue('--pspx-whole')
  );
  expect(wholes).toEqual(['2', '4', '1']);
  expect(heads()).toEqual(['t2', 't4', 't1']);
  expect(tab.node.querySelector('.pspx-sum')!.textContent).toBe('3 runs took 7.00 s in total.');
  const order = tab.node.querySelector('select')!;
  order.value = 'longest';
  order.dispatchEvent(new Event('change'));
  expect(heads()).toEqual(['t4', 't2', 't1']);
});

test('a table that has not come is loading, and then is empty', () => {
  const texts = () => {
    const tabs = [new TimeTab(page), new MemoryTab(page), new KeysTab(page), new DevicesTab(page)];
    return (rows: Parameters<typeof sessionOf>[0]) =>
      tabs.map(tab => {
        tab.show(sessionOf(rows).session);
        return tab.node.querySelector('.pspx-nothing')!.textContent;
      });
  };
  expect(texts()({})).toEqual(Array(4).fill('Loading...'));
  expect(texts()({ cells: [], buffers: [], keys: [], devices: [], placements: [] })).toEqual([
    'No cells have run yet.',
    'No arrays are alive.',
    'No random keys yet.',
    'The kernel has not used a device yet.'
  ]);
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
  view.update([programRow('1', { miss })]);
  host.querySelector<HTMLButtonElement>('.pspx-cache-name')!.click();
  const why = [...host.querySelectorAll('dd')].find(dd => dd.textContent?.startsWith('x: f32'));
  expect(why?.querySelector('code')?.textContent).toBe('x');
  view.dispose();
});
