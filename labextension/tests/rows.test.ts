/** Lists that are kept in step: what stays is the same element, focus stays, a page at a time. */

import { beforeEach, expect, test } from 'vitest';
import { el } from '../src/views/dom';
import { Rows } from '../src/tabs/rows';

type Row = { id: string; text: string };

let list: HTMLElement;
let more: HTMLElement;
let rows: Rows<Row>;

beforeEach(() => {
  list = el('div');
  more = el('div');
  document.body.replaceChildren(list, more);
  rows = new Rows(list, more, row => el('p', null, el('button', null, row.text)), 3);
});

const row = (id: string, text = id): Row => ({ id, text });
const texts = () => [...list.children].map(child => child.textContent);

test('follow any change of order, and keep the elements of what stays', () => {
  const [a, b, c] = [row('a'), row('b'), row('c')];
  rows.update([a, b]);
  const kept = list.children[1];
  rows.update([c, b]);
  expect(texts()).toEqual(['c', 'b']);
  expect(list.children[1]).toBe(kept);
  rows.update([b, a, c]);
  expect(texts()).toEqual(['b', 'a', 'c']);
  expect(list.children[0]).toBe(kept);
  rows.update([]);
  expect(texts()).toEqual([]);
});

test('follow every change of a few rows', () => {
  let seed = 1;
  const random = (n: number) => (seed = (seed * 16807) % 2147483647) % n;
  const pool = ['a', 'b', 'c', 'd', 'e'].map(id => row(id));
  rows = new Rows(list, more, r => el('p', null, r.text), 99);
  for (let i = 0; i < 300; i++) {
    const at = random(5);
    pool[at] = row(pool[at].id, `${pool[at].id}${i}`);
    const shown = pool.filter(() => random(3)).sort(() => random(3) - 1);
    rows.update(shown);
    expect(texts()).toEqual(shown.map(r => r.text));
  }
});

test('a row that is replaced keeps the focus', () => {
  rows.update([row('a'), row('b')]);
  list.querySelectorAll('button')[1].focus();
  rows.update([row('c'), row('a'), row('b', 'B')]);
  expect(document.activeElement?.textContent).toBe('B');
});

test('further rows come when they are asked for', () => {
  const all = [...'abcdefgh'].map(id => row(id));
  rows.update(all);
  expect(texts()).toEqual(['a', 'b', 'c']);
  more.querySelector('button')!.click();
  expect(texts()).toHaveLength(8);
  expect(more.children).toHaveLength(0);
});
