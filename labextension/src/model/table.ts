/**
 * The rows of one topic, as the kernel sends them.
 *
 * A row is replaced whole and never changed, so views may compare rows by identity. A table that has
 * missed a message takes no changes until the kernel sends all rows again.
 */

import type { Row, Topic, TopicChanges } from '../contract';

/** Names the kind of rows that each topic has. */
type RowKinds = {
  programs: 'program';
  cells: 'cell';
  buffers: 'buffer';
  memory: 'memory';
  keys: 'key';
  lines: 'line';
  devices: 'device';
  placements: 'placement';
  exchanges: 'exchange';
  engines: 'engine';
  badges: 'badge';
};

export type RowOf<T extends Topic> = Extract<Row, { row: RowKinds[T] }>;

/** What views see of a table. */
export interface ITable<R extends Row = Row> {
  /** How many old rows the kernel has dropped for want of room. */
  readonly forgotten: number;
  /** Whether the kernel has sent all rows at least once. */
  readonly known: boolean;
  readonly size: number;
  get(id: string): R | undefined;
  /** The rows in their order; the same array until a row changes. */
  inOrder(): readonly R[];
}

export type Tables = { readonly [T in Topic]: ITable<RowOf<T>> };

export class Table<R extends Row = Row> implements ITable<R> {
  get forgotten(): number {
    return this._forgotten;
  }

  get known(): boolean {
    return this._known;
  }

  /** Whether rows may be missing until the kernel sends all of them. */
  get behind(): boolean {
    return this._behind;
  }

  get size(): number {
    return this._rows.size;
  }

  get(id: string): R | undefined {
    return this._rows.get(id);
  }

  inOrder(): readonly R[] {
    this._sorted ??= [...this._rows.values()].sort((a, b) => a.order - b.order);
    return this._sorted;
  }

  /** Apply a change; returns whether that was possible. */
  apply(change: TopicChanges): boolean {
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
    this._forgotten = change.forgotten;
    this._sorted = null;
    return true;
  }

  /** A message was missed: changes count again from the next reset on. */
  missed(): void {
    this._behind = true;
  }

  private readonly _rows = new Map<string, R>();
  private _sorted: readonly R[] | null = null;
  private _forgotten = 0;
  private _known = false;
  private _behind = true;
}
