/** Where the time of a cell went: as a bar, and as a table. */

import type { CellRow } from '../contract';
import { el, said } from '../views/dom';
import { trans } from '../views/trans';
import { count, duration, size } from '../views/units';
import { heads, percent } from './tab';

/** The parts of a cell's time, in the order in which they are drawn. */
export const PARTS = ['trace', 'lower', 'compile', 'device', 'transfer', 'python', 'idle'] as const;

type Part = (typeof PARTS)[number] | 'after';

function words(part: Part): { text: string; hint: string } {
  switch (part) {
    case 'trace':
      return {
        text: trans.__('trace'),
        hint: trans.__('Running your function once to record its program')
      };
    case 'lower':
      return { text: trans.__('lower'), hint: trans.__('Writing the program as StableHLO') };
    case 'compile':
      return { text: trans.__('compile'), hint: trans.__('XLA, or the cache') };
    case 'device':
      return { text: trans.__('device'), hint: trans.__('Waiting for the device') };
    case 'transfer':
      return {
        text: trans.__('transfer'),
        hint: trans.__('Copies between the device and Python')
      };
    case 'python':
      return { text: trans.__('python'), hint: trans.__('Your Python code, and all the rest') };
    case 'idle':
      return {
        text: trans.__('idle'),
        hint: trans.__('Waiting for something else: input, files, sleep')
      };
    case 'after':
      return {
        text: trans.__('after the cell'),
        hint: trans.__('Work of the device after the end of the cell')
      };
  }
}

/** A cell's time and its parts. */
export type Times = Pick<CellRow, 'wall' | 'after' | (typeof PARTS)[number]>;

/**
 * The time of a cell as one bar, with the device's work after the cell at its end. Bars of one list
 * have one scale: where `--pspx-longest` is set, the bar of so many seconds is as wide as the list.
 */
export function cellBar(row: Times): HTMLElement {
  const after = row.after ?? 0;
  const whole = row.wall + after;
  const parts = PARTS.filter(part => row[part] > 0);
  const texts = parts.map(part => `${words(part).text} ${duration(row[part])}`);
  if (after) {
    texts.push(`${words('after').text} ${duration(after)}`);
  }
  const piece = (part: Part, seconds: number) =>
    el('span', {
      class: `pspx-part pspx-part-${part}`,
      style: `width:${percent(seconds, whole)}`
    });
  return el(
    'span',
    {
      class: 'pspx-bar',
      style: `--pspx-whole:${whole}`,
      role: 'img',
      'aria-label': texts.join(', ') || trans.__('no time yet'),
      title: texts.join('\n')
    },
    parts.map(part => piece(part, row[part])),
    after > 0 && piece('after', after)
  );
}

/** The numbers behind the bar. */
export function cellTable(row: CellRow): HTMLElement {
  const line = (part: (typeof PARTS)[number]) =>
    el(
      'tr',
      null,
      el(
        'th',
        { scope: 'row', class: 'pspx-left' },
        el('span', { class: `pspx-swatch pspx-part-${part}` }),
        words(part).text
      ),
      el('td', null, duration(row[part])),
      el('td', null, percent(row[part], row.wall))
    );
  const sources = Object.entries(row.sources)
    .filter(([, n]) => n)
    .map(([from, n]) => trans.__('%1 from %2', count(n), from));
  const moved = Object.entries(row.bytes)
    .filter(([, n]) => n)
    .map(([way, n]) => `${way} ${size(n)}`);
  return el(
    'div',
    { class: 'pspx-entry-body' },
    el(
      'table',
      { class: 'pspx-table' },
      el('caption', { class: 'pspx-hidden' }, trans.__('The time of this cell by part')),
      heads(trans.__('part'), trans.__('time'), trans.__('share')),
      el('tbody', null, PARTS.filter(part => row[part] > 0).map(line))
    ),
    row.after
      ? el(
          'p',
          null,
          trans.__('The device worked for %1 after the end of the cell.', duration(row.after))
        )
      : row.working && el('p', null, trans.__('The device is still working.')),
    sources.length > 0 && el('p', null, `${trans.__('Programs:')} `, said(sources.join(', '))),
    moved.length > 0 && el('p', null, `${trans.__('Copied:')} `, said(moved.join(', ')))
  );
}

/** The colours of the bars, or of some of their parts. */
export function legend(parts: readonly Part[] = [...PARTS, 'after']): HTMLElement {
  return el(
    'ul',
    { class: 'pspx-legend', 'aria-label': trans.__('Colours of the bars') },
    parts.map(part => {
      const { text, hint } = words(part);
      return el(
        'li',
        { title: hint },
        el('span', { class: `pspx-swatch pspx-part-${part}` }),
        text
      );
    })
  );
}
