/** The columns of the table of programs. */

import type { ProgramRow } from '../../contract';
import { el, said } from '../dom';
import { titleOf } from '../titles';
import { trans } from '../trans';
import { duration, size } from '../units';

export type Column = {
  readonly name: string;
  readonly title: string;
  readonly hint: string;
  /** Text, which stands at the left. */
  readonly left?: boolean;
  /** Left out where there is little room. */
  readonly wide?: boolean;
  /** What the rows are sorted by. */
  key(row: ProgramRow): number | string;
  show(row: ProgramRow): Node | string;
};

export function columns(): readonly Column[] {
  return [
    {
      name: 'function',
      title: trans.__('function'),
      hint: trans.__('The compiled function'),
      left: true,
      key: row => row.title.toLowerCase(),
      show: row => said(titleOf(row), 60)
    },
    {
      name: 'types',
      title: trans.__('types'),
      hint: trans.__('The types of its arguments'),
      left: true,
      wide: true,
      key: row => row.signature,
      show: row => el('span', { class: 'pspx-muted' }, said(row.signature, 40))
    },
    {
      name: 'from',
      title: trans.__('from'),
      hint: trans.__('Where the executable came from'),
      left: true,
      key: row => row.found,
      show: row => {
        const { text, hint } = found(row.found);
        return el('span', { title: hint }, text);
      }
    },
    {
      name: 'trace',
      title: trans.__('trace'),
      hint: trans.__('Time to run the Python function and record its program'),
      wide: true,
      key: row => row.trace ?? -1,
      show: row => duration(row.trace)
    },
    {
      name: 'lower',
      title: trans.__('lower'),
      hint: trans.__('Time to write the program as StableHLO'),
      wide: true,
      key: row => row.lower ?? -1,
      show: row => duration(row.lower)
    },
    {
      name: 'compile',
      title: trans.__('compile'),
      hint: trans.__('Time until the executable was ready, wherever it came from'),
      wide: true,
      key: row => row.compile,
      show: row => duration(row.compile)
    },
    {
      name: 'total',
      title: trans.__('total'),
      hint: trans.__('Trace, lower and compile together'),
      key: total,
      show: row => duration(total(row))
    },
    {
      name: 'xla',
      title: trans.__('XLA took'),
      hint: trans.__('Time XLA needed to compile it, now or in an earlier session'),
      wide: true,
      key: row => row.byXla,
      show: row => duration(row.byXla)
    },
    {
      name: 'size',
      title: trans.__('size'),
      hint: trans.__('Size on disk'),
      key: row => row.size ?? -1,
      show: row => size(row.size)
    }
  ];
}

/** Where an executable came from, in words. */
export function found(where: ProgramRow['found']): { text: string; hint: string } {
  switch (where) {
    case 'xla':
      return { text: trans.__('compiled'), hint: trans.__('XLA compiled it') };
    case 'memory':
      return {
        text: trans.__('memory'),
        hint: trans.__('This process had already compiled the same program')
      };
    case 'disk':
      return { text: trans.__('disk'), hint: trans.__('Loaded from the cache on disk') };
  }
}

/** How long it took to make a program. */
export function total(row: ProgramRow): number {
  return (row.trace ?? 0) + (row.lower ?? 0) + row.compile;
}
