import type { ProgramRow } from '../contract';

/** What a program is called: a function's name, or what a cell assigns, with its number. */
export function titleOf(row: Pick<ProgramRow, 'title' | 'cell'>): string {
  return row.cell ? `${row.title} ${row.cell}` : row.title;
}
