/** Lists of programs: the user's functions first, and what the last cell used. */

import { expect, test } from 'vitest';
import { lastUsed, ProgramTab } from '../src/tabs/program';
import { cacheView } from '../src/views/cache/view';
import { Folds } from '../src/views/folds';
import { page, sessionOf } from './fake';
import { place, program } from './rows';

const LIBRARY = { library: true, canShow: true };

const rows = [
  program('1', { name: 'add', ...LIBRARY, at: place('a', 2) }),
  program('2', { name: 'step' }),
  program('3', { name: 'mul', ...LIBRARY, at: place('a', 2) }),
  program('4', { name: 'sin', ...LIBRARY, at: place('b', 1) }),
  program('5', { name: 'cell', title: 'w, loss', cell: 'In[7]' })
];

test('library calls are folded under the line that made them, behind the functions', () => {
  const folds = new Folds();
  const newest = [...rows].reverse();
  const shown = folds.entries(newest);
  expect(shown.map(one => one.row?.title ?? one.fold?.rows.length)).toEqual([
    'w, loss',
    'step',
    1,
    2
  ]);
  // What did not change is the same object, so that it is not drawn again.
  expect(folds.entries(newest)).toEqual(shown);
  folds.entries(newest).forEach((one, i) => expect(one).toBe(shown[i]));
  folds.toggle(shown[3].id);
  const open = folds.entries(newest);
  expect(open.map(one => one.row?.title ?? '')).toEqual(['w, loss', 'step', '', '', 'mul', 'add']);
  expect(open.at(-1)!.row && (open.at(-1) as { isInside: boolean }).isInside).toBe(true);
});

test('the Program tab lists a cell by its outputs and number, and a filter finds what is folded', () => {
  const tab = new ProgramTab(page);
  tab.show(sessionOf({ programs: rows }).session);
  const texts = () => [...tab.node.querySelectorAll('.pspx-item')].map(one => one.textContent);
  expect(texts()[0]).toContain('w, lossIn[7] · ');
  expect(texts().slice(2)).toEqual(['▸1 library callCell In[1]:1', '▸2 library callsCell In[1]:2']);
  tab.node.querySelectorAll<HTMLButtonElement>('.pspx-item')[3].click();
  expect(texts().map(text => text.slice(0, 3))).toEqual(['w, ', 'ste', '▸1 ', '▾2 ', 'mul', 'add']);
  const filter = tab.node.querySelector<HTMLInputElement>('input[type="search"]')!;
  filter.value = 'ADD';
  filter.dispatchEvent(new Event('input'));
  expect(texts()).toHaveLength(1);
  expect(texts()[0]).toContain('add');
  tab.dispose();
});

test('the Cache tab folds them too, until it is sorted', () => {
  const host = document.createElement('div');
  document.body.append(host);
  const view = cacheView(host, {});
  view.update(rows);
  const heads = () => [...host.querySelectorAll('tbody th')].map(one => one.textContent);
  expect(heads()).toEqual([
    'w, loss In[7]',
    'step',
    '▸ Cell In[1]:1 · 1 library call',
    '▸ Cell In[1]:2 · 2 library calls'
  ]);
  host.querySelectorAll<HTMLButtonElement>('.pspx-cache-fold button')[1].click();
  expect(heads().slice(-2)).toEqual(['mul', 'add']);
  host.querySelector<HTMLButtonElement>('[data-pspx-column="function"]')!.click();
  expect(heads()).toEqual(['add', 'mul', 'sin', 'step', 'w, loss In[7]']);
  view.dispose();
});

test('what is followed is what the last cell used, and no call of a library', () => {
  const used = (id: string, cell: number, over = {}) => program(id, { used: cell, ...over });
  expect(lastUsed([])).toBeUndefined();
  expect(lastUsed([used('1', 5), used('2', 4)])!.id).toBe('1');
  expect(lastUsed([used('1', 5), used('2', 6, LIBRARY)])!.id).toBe('1');
  expect(lastUsed([used('1', 5), used('2', 5)])!.id).toBe('2');
  expect(lastUsed([used('1', 4), used('2', 5, { canShow: false })])!.id).toBe('1');
});
