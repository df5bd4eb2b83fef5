/**
 * Device time in the margin of the notebook's own cells.
 *
 * A bar stands beside each measured line, relative to the slowest line; the part from fusions of
 * several lines is hatched. An editor gets the margin when there is something to show, and bars move
 * with their lines while the cell is edited.
 */

import type { Cell } from '@jupyterlab/cells';
import type { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { Notebook } from '@jupyterlab/notebook';
import { type Extension, RangeSet, StateEffect, StateField } from '@codemirror/state';
import { type EditorView, gutter, GutterMarker } from '@codemirror/view';
import type { LineRow } from '../contract';
import { el } from '../views/dom';
import { trans } from '../views/trans';
import { count, duration } from '../views/units';
import { percent, shareBar } from '../tabs/tab';

class Heat extends GutterMarker {
  constructor(
    readonly row: LineRow,
    readonly slowest: number
  ) {
    super();
  }

  eq(other: Heat): boolean {
    return other.row === this.row && other.slowest === this.slowest;
  }

  toDOM(): Node {
    const { seconds, shared, runs } = this.row;
    const words = [
      trans._n(
        '%2 on the device in %3 run of programs, in the last profiled cell that ran this line',
        '%2 on the device in %3 runs of programs, in the last profiled cell that ran this line',
        runs,
        duration(seconds),
        count(runs)
      ),
      shared && trans.__('%1 of it are shares of fusions of several lines', duration(shared))
    ];
    return el(
      'span',
      { class: 'pspx-heat', title: words.filter(Boolean).join('; ') },
      shareBar(percent(seconds - shared, this.slowest), percent(shared, this.slowest)),
      el('span', { class: 'pspx-heat-time' }, `${shared ? '~' : ''}${duration(seconds)}`)
    );
  }
}

const setHeat = StateEffect.define<RangeSet<Heat>>();

const heatField = StateField.define<RangeSet<Heat>>({
  create: () => RangeSet.empty,
  update(heat, transaction) {
    const moved = heat.map(transaction.changes);
    return transaction.effects.reduce(
      (last, effect) => (effect.is(setHeat) ? effect.value : last),
      moved
    );
  },
  // No margin where there is nothing to show.
  provide: field =>
    gutter({
      class: 'pspx-heat-gutter',
      markers: view => view.state.field(field)
    })
});

const extension: Extension = [heatField];

/** Put these lines into the margin of an editor. */
export function drawHeat(view: EditorView, rows: readonly LineRow[], slowest: number): void {
  const has = view.state.field(heatField, false) !== undefined;
  if (!has && !rows.length) {
    return;
  }
  if (!has) {
    view.dispatch({ effects: StateEffect.appendConfig.of(extension) });
  }
  const { doc } = view.state;
  const heat = RangeSet.of(
    rows
      .filter(row => row.at.line >= 1 && row.at.line <= doc.lines)
      .map(row => new Heat(row, slowest).range(doc.line(row.at.line).from)),
    true
  );
  view.dispatch({ effects: setHeat.of(heat) });
  view.dom.classList.toggle('pspx-heated', rows.length > 0);
}

/** The margins of all cells of a notebook. */
export class HeatMap {
  /** Draw what was measured; an empty list takes the margins away. */
  show(notebook: Notebook, rows: readonly LineRow[]): void {
    if (rows === this._drawn.get(notebook)) {
      return;
    }
    this._drawn.set(notebook, rows);
    const slowest = rows.reduce((most, row) => Math.max(most, row.seconds), 0);
    const byCell = new Map<string, LineRow[]>();
    for (const row of rows) {
      byCell.set(row.at.cell, [...(byCell.get(row.at.cell) ?? []), row]);
    }
    for (const cell of notebook.widgets) {
      const mine = byCell.get(cell.model.id) ?? [];
      // A cell out of sight has no editor yet.
      void cell.ready.then(() => {
        if (this._drawn.get(notebook) === rows) {
          this._draw(cell, mine, slowest);
        }
      });
    }
  }

  private _draw(cell: Cell, rows: readonly LineRow[], slowest: number): void {
    const editor = cell.isDisposed ? null : (cell.editor as CodeMirrorEditor | null);
    if (editor?.editor) {
      drawHeat(editor.editor, rows, slowest);
    }
  }

  private readonly _drawn = new WeakMap<Notebook, readonly LineRow[]>();
}
