/**
 * The rows of one topic, as the kernel says them.
 *
 * A row is replaced whole and never changed, so a view may take a row that is the same object to be
 * the same row. A table that has missed something takes no changes until all is said again.
 */

import type { Changes, Row } from './contract';

export type Change = Changes['topics'][number];

export class Table<R extends Row = Row> {
  /** How many old rows the kernel has no room for any more. */
  forgotten = 0;

  /** Whether all rows have been said at least once. */
  get known(): boolean {
    return this._known;
  }

  /** Whether something is missing: all rows are to be said (again). */
  get behind(): boolean {
    return this._behind;
  }

  get size(): number {
    return this._rows.size;
  }

  get(id: string): R | undefined {
    return this._rows.get(id);
  }

  /** The rows in the order in which they came to be. */
  inOrder(): R[] {
    this._sorted ??= [...this._rows.values()].sort((a, b) => a.order - b.order);
    return this._sorted;
  }

  /** Take a change over; whether it could be. */
  apply(change: Change): boolean {
    if (change.reset) {
      this._rows.clear();
      this._behind = false;
      this._known = true;
    } else if (this._behind) {
      return false;
    }
    for (const id of change.drop) {
      this._rows.delete(id);
    }
    for (const row of change.put) {
      this._rows.set(row.id, row as R);
    }
    this.forgotten = change.forgotten;
    this._sorted = null;
    return true;
  }

  /** Something was missed: what comes next can be believed only from a reset on. */
  missed(): void {
    this._behind = true;
  }

  clear(): void {
    this._rows.clear();
    this._sorted = null;
    this._known = false;
    this._behind = true;
    this.forgotten = 0;
  }

  private _rows = new Map<string, R>();
  private _sorted: R[] | null = null;
  private _known = false;
  private _behind = true;
}
