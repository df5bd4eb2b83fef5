/** What the tab *Devices* says of placements, exchanges and processes. */

import { expect, test, vi } from 'vitest';
import type { Row, Topic } from '../src/contract';
import { DevicesTab } from '../src/tabs/devices';
import { page, sessionOf } from './fake';
import { device, engine, exchange, placement } from './rows';

const FOUR = [0, 1, 2, 3].map(i => device(i, { bytes: 1024 * (i + 1) }));

function shown(rows: Partial<Record<Topic, Row[]>>, given = page): DevicesTab {
  const tab = new DevicesTab(given);
  tab.show(
    sessionOf({ devices: FOUR, placements: [], exchanges: [], engines: [], ...rows }).session
  );
  return tab;
}

const texts = (root: ParentNode, selector: string) =>
  [...root.querySelectorAll(selector)].map(node => node.textContent);

test('the largest array is shown on its mesh; copies have the same colour', () => {
  const { node } = shown({ placements: [placement('x')] });
  expect(texts(node, '.pspx-map-label')).toEqual(['y 0', 'y 1', 'x 0', 'x 1']);
  const tiles = [...node.querySelectorAll<HTMLElement>('.pspx-tile')];
  const hues = tiles.map(tile => tile.style.getPropertyValue('--pspx-hue'));
  expect(hues[0]).toBe(hues[1]);
  expect(hues[2]).toBe(hues[3]);
  expect(hues[0]).not.toBe(hues[2]);
  expect(texts(node, '.pspx-tile-range')).toEqual(['0:4', '0:4', '4:8', '4:8']);
  expect(node.querySelector('figcaption')!.textContent).toBe('2 parts of 64 B, each on 2 devices');
  expect(texts(node, '.pspx-parts li')).toEqual(['[0:4, :] cpu:0, cpu:1', '[4:8, :] cpu:2, cpu:3']);
});

test('a mesh of one axis has a label above each device, and none before its row', () => {
  const row = placement('x', { sizes: [4], axes: ['x'], parts: [0, 1, 2, 3], copies: 1 });
  const { node } = shown({ placements: [row] });
  const map = node.querySelector<HTMLElement>('.pspx-map')!;
  expect(map.style.gridTemplateColumns).toBe('repeat(4, minmax(0, 1fr))');
  const looks = [...map.children].map(child => child.className.split(' ').at(-1));
  expect(looks).toEqual([
    ...Array<string>(4).fill('pspx-map-top'),
    ...Array<string>(4).fill('pspx-tile')
  ]);
  // A mesh of two axes has a corner.
  const { children } = shown({ placements: [placement('x')] }).node.querySelector('.pspx-map')!;
  expect([...children].map(child => child.className).slice(0, 2)).toEqual([
    '',
    'pspx-map-label pspx-map-top'
  ]);
});

test('a device under the pointer is told of', () => {
  const { node } = shown({ placements: [placement('x')] });
  node
    .querySelectorAll('.pspx-tile')[3]
    .dispatchEvent(new MouseEvent('pointermove', { bubbles: true }));
  expect(node.querySelector('figcaption')!.textContent).toBe(
    'cpu:3 · [4:8, :] 64 B · also on cpu:2 · 4.00 KiB in all'
  );
});

test('another array is chosen with a button, and stays chosen', () => {
  const whole = placement('w', { order: 1e6, parts: [0, 0, 0, 0], ranges: [':, :'], copies: 4 });
  const tab = shown({ placements: [placement('x'), whole] });
  tab.node.querySelectorAll<HTMLElement>('.pspx-item')[1].click();
  expect(tab.node.querySelector('h2')!.textContent).toBe('w f32[8@x,4]');
  expect(tab.node.querySelector('figcaption')!.textContent).toBe(
    'Whole on each of 4 devices, 64 B each'
  );
  const pressed = [...tab.node.querySelectorAll('.pspx-item')].map(item =>
    item.getAttribute('aria-pressed')
  );
  expect(pressed).toEqual(['false', 'true']);
});

test('a thousand devices are small squares without texts', () => {
  const ids = Array.from({ length: 1024 }, (_, i) => device(i));
  const large = placement('x', {
    sizes: [32, 32],
    devices: ids.map(row => row.id),
    parts: ids.map((_, i) => i),
    ranges: ids.map((_, i) => `${i}:${i + 1}`),
    copies: 1
  });
  const { node } = shown({ devices: ids, placements: [large] });
  expect(node.querySelectorAll('.pspx-map-small .pspx-tile').length).toBe(1024);
  expect(node.querySelectorAll('.pspx-tile strong').length).toBe(0);
});

test('without an array over several devices the devices have their bytes', () => {
  const { node } = shown({});
  expect(texts(node, '.pspx-tile-range')).toEqual(['1.00 KiB', '2.00 KiB', '3.00 KiB', '4.00 KiB']);
  expect(node.textContent).toContain('No named array lies on more than one device.');
});

test('what is sent is listed by line, the most first; a click shows the line', () => {
  const reveal = vi.fn();
  const rows = [
    exchange('a', { sent: 1024, share: 0.004 }),
    exchange('b', { sent: 4096, collective: 'all-gather', times: 3 })
  ];
  const { node } = shown({ exchanges: rows }, { ...page, reveal });
  const cells = [...node.querySelectorAll('tbody tr')].map(row => texts(row, 'th, td'));
  expect(cells).toEqual([
    ['Cell In[1]:6', 'all-gatherlayer · 4 devices, 3 times', '4.00 KiB', '25%'],
    ['Cell In[1]:6', 'all-reducelayer · 4 devices', '1.00 KiB', '<1%']
  ]);
  node.querySelector<HTMLElement>('tbody button')!.click();
  expect(reveal).toHaveBeenCalledWith(rows[1].at);
});

test('processes lie on one axis of time, with how far apart they ended', () => {
  const rows = [
    engine(0),
    engine(1, { began: 0.5, ended: 1, wall: 0.5 }),
    engine(2, { alive: false, began: null, ended: null, memory: null, bytes: null })
  ];
  const { node } = shown({ engines: rows });
  expect(node.textContent).toContain('In[7]: the last process ended it 500 ms after the first.');
  const bars = [...node.querySelectorAll<HTMLElement>('.pspx-lane-bar')];
  expect(bars.map(bar => [bar.style.marginLeft, bar.style.width])).toEqual([
    ['0.00%', '50.00%'],
    ['50.00%', '50.00%']
  ]);
  expect(texts(node, '.pspx-entry-head').at(-1)).toBe('process 2died–');
});
