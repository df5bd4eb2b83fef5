/** The listings of a program as rows of panes. */

import type { Compiled, Listing, Program } from '../../contract';
import { visible } from '../dom';
import { editsOf, nameless } from './difference';

export type Form = 'source' | 'jaxpr' | 'stablehlo' | 'hlo';

export type Row = {
  text: string;
  /** How many of the following rows lie inside of this one. */
  fold: number;
  /** The equations that the row belongs to. */
  links: readonly number[];
  level: number;
  /** What stands in front of it. */
  number: string;
  kind: 'line' | 'head' | 'new' | 'gone';
};

/** A program of which the compiled forms may still be missing. */
export type Document = Omit<Program, keyof Compiled> & Partial<Compiled>;

const NO_LINKS: readonly number[] = [];

/**
 * The lines of a listing, each at its level of folding. `first` is the number of the first line;
 * `outside` rows that are no lines of the listing hold all of them.
 */
export function rowsOf({ text, folds, links }: Listing, first = 1, outside = 0): Row[] {
  const texts = visible(text).split('\n');
  const insides = new Map(folds.map(([at = 0, inside = 0]) => [at, inside]));
  const ends: number[] = [];
  return links.map((link, i) => {
    while ((ends.at(-1) ?? i) < i) {
      ends.pop();
    }
    const level = outside + ends.length;
    const fold = insides.get(i) ?? 0;
    if (fold) {
      ends.push(i + fold);
    }
    return {
      text: texts[i] ?? '',
      fold,
      links: link === null ? NO_LINKS : typeof link === 'number' ? [link] : link,
      level,
      number: String(first + i),
      kind: 'line'
    };
  });
}

/** The rows of one form of a program; one row with an ellipsis where the form is still to come. */
export function formOf(program: Document, form: Form): Row[] {
  const head = (text: string, fold: number): Row => ({
    text,
    fold,
    links: NO_LINKS,
    level: 0,
    number: '',
    kind: 'head'
  });
  if (form !== 'source') {
    const listing = program[form];
    return listing ? rowsOf(listing) : [head('…', 0)];
  }
  return program.sources.flatMap(source => {
    const lines = rowsOf(source.lines, source.first, 1);
    return [head(source.name, lines.length), ...lines];
  });
}

/** The rows of a form now and those that are gone since before, in one list. */
export function compared(form: Form, before: readonly Row[], now: readonly Row[]): Row[] {
  const key = (row: Row) => nameless(form, row.text);
  return editsOf(before.map(key), now.map(key)).flatMap(({ kind, index }): Row[] => {
    const row = (kind === 'gone' ? before : now)[index];
    if (!row) {
      return [];
    }
    if (kind === 'gone') {
      return [{ ...row, kind, links: NO_LINKS, fold: 0, number: '' }];
    }
    // Rows that are gone stand in between, so nothing folds.
    return [{ ...row, fold: 0, kind: kind === 'new' ? kind : row.kind }];
  });
}
