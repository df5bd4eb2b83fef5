/**
 * Programs as a person looks for them: the functions of the user first, and behind them, folded, what
 * functions of libraries compiled, by the line of the user's code that called them.
 */

import type { Place, ProgramRow } from '../contract';

/** The programs of libraries that one line made, the newest first. */
export type Fold = {
  readonly id: string;
  readonly at: Place | null;
  readonly rows: readonly ProgramRow[];
  readonly isOpen: boolean;
};

/** What a list has a line for. `row` is a program, in a fold or not, and `fold` the head of a fold. */
export type Entry = { readonly id: string } & (
  | { readonly row: ProgramRow; readonly isInside: boolean; readonly fold?: undefined }
  | { readonly fold: Fold; readonly row?: undefined }
);

export class Folds {
  /** Entries for these programs, in their order; one that did not change is the same object. */
  entries(rows: readonly ProgramRow[]): Entry[] {
    const folds = new Map<string, ProgramRow[]>();
    const found: Entry[] = [];
    for (const row of rows) {
      if (row.library) {
        const key = `:${row.at?.cell ?? ''}:${row.at?.text ?? ''}`;
        const inside = folds.get(key);
        if (inside) {
          inside.push(row);
        } else {
          folds.set(key, [row]);
        }
      } else {
        found.push(this._program(row, false));
      }
    }
    for (const [id, inside] of folds) {
      const isOpen = this._open.has(id);
      found.push(this._fold({ id, at: inside[0]?.at ?? null, rows: inside, isOpen }));
      if (isOpen) {
        found.push(...inside.map(row => this._program(row, true)));
      }
    }
    this._known = new Map(found.map(entry => [entry.id, entry]));
    return found;
  }

  /** Entries without folds. */
  flat(rows: readonly ProgramRow[]): Entry[] {
    const found = rows.map(row => this._program(row, false));
    this._known = new Map(found.map(entry => [entry.id, entry]));
    return found;
  }

  toggle(id: string): void {
    if (!this._open.delete(id)) {
      this._open.add(id);
    }
  }

  /** The next rows are of another session. */
  forget(): void {
    this._open.clear();
    this._known.clear();
  }

  private _program(row: ProgramRow, isInside: boolean): Entry {
    const known = this._known.get(row.id);
    return known?.row === row && known.isInside === isInside
      ? known
      : { id: row.id, row, isInside };
  }

  private _fold(fold: Fold): Entry {
    const known = this._known.get(fold.id);
    const before = known?.fold;
    const isSame =
      before?.isOpen === fold.isOpen &&
      before.rows.length === fold.rows.length &&
      before.rows.every((row, i) => row === fold.rows[i]);
    return known && isSame ? known : { id: fold.id, fold };
  }

  private readonly _open = new Set<string>();
  private _known = new Map<string, Entry>();
}

/** Whether a program has a text in its name or types. */
export function fits(row: ProgramRow, wanted: string): boolean {
  return `${row.title}\n${row.name}\n${row.signature}`.toLowerCase().includes(wanted);
}
