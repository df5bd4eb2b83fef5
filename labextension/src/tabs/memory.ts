/**
 * *Memory*: what is alive and whose it is, and how much was alive at the end of each cell.
 */

import type { BufferRow, MemoryRow } from '../contract';
import type { KernelModel } from '../model';
import { cut, el, replace, said, size, svg } from '../shared';
import { Rows } from './rows';
import { button, Drawn, empty, forgottenNote, type Page, shareBar, type Tab } from './tab';

const KINDS = {
  variable: 'a variable of the notebook',
  output: 'an output that the notebook keeps',
  traceback: 'the frames of the last error',
  executable: 'constants of a compiled function',
  unowned: 'held by something that is not a name of the notebook'
};

export class MemoryTab implements Tab {
  readonly name = 'memory';
  readonly label = 'Memory';
  readonly topics = ['buffers', 'memory'] as const;
  readonly node: HTMLElement;

  constructor(private _page: Page) {
    this.node = el(
      'div',
      { class: 'pspx-stack' },
      this._total,
      this._series,
      el('h2', null, 'By owner'),
      this._owners,
      this._more,
      this._note,
      this._status
    );
    this._rows = new Rows(this._owners, this._more, row => this._owner(row));
  }

  show(model: KernelModel): void {
    if (this._drawn.isOther(model)) {
      this._model = model;
      this._points = null;
      replace(this._status);
    }
    const buffers = model.tables.buffers;
    const rows = [...buffers.inOrder()].sort((a, b) => b.bytes - a.bytes || a.order - b.order);
    const total = rows.reduce((sum, row) => sum + row.bytes, 0);
    // The bars are parts of a whole that changes, without being drawn again.
    this._owners.style.setProperty('--pspx-whole', String(total || 1));
    this._rows.update(rows);
    replace(
      this._total,
      el('strong', null, size(total)),
      ` alive, of ${rows.length} ${rows.length === 1 ? 'owner' : 'owners'}`
    );
    replace(
      this._note,
      rows.length ? forgottenNote(buffers.forgotten) : empty(buffers, 'No array is alive.')
    );
    const points = model.tables.memory.inOrder();
    if (points !== this._points) {
      this._points = points;
      replace(this._series, points.length > 1 && series(points));
    }
  }

  private _owner(row: BufferRow): HTMLElement {
    const about = [
      row.what,
      row.device && `on ${row.device}`,
      row.cell && `set in ${row.cell}`,
      row.also && `also: ${row.also}`
    ].filter(Boolean);
    return el(
      'div',
      { class: 'pspx-entry', role: 'listitem' },
      el(
        'div',
        { class: 'pspx-entry-head' },
        el(
          'span',
          { class: 'pspx-code pspx-ellipsis', title: KINDS[row.kind] },
          said(row.owner, 60)
        ),
        row.kind !== 'variable' && el('span', { class: 'pspx-muted' }, row.kind),
        el('span', { class: 'pspx-number' }, size(row.bytes)),
        row.canFree &&
          button('Free…', () => this._free(row), `Remove ${row.owner} and delete its arrays`)
      ),
      shareBar(`calc(100% * ${row.bytes} / var(--pspx-whole))`),
      el('div', { class: 'pspx-muted pspx-small pspx-broken' }, said(about.join(' · '), 120))
    );
  }

  private _free(row: BufferRow): void {
    const model = this._model!;
    const text =
      `The variable ${row.owner} (${row.what}, ${size(row.bytes)}) is removed from the notebook, ` +
      'and the arrays that nothing else holds are deleted.';
    void this._page.confirm(`Free ${cut(row.owner, 40)}?`, text, 'Free').then(async sure => {
      if (sure) {
        const answer = await model.ask({ what: 'free', id: row.id });
        replace(
          this._status,
          el('span', { class: answer.ok ? null : 'pspx-error' }, said(answer.text, 400))
        );
      }
    });
  }

  private _model: KernelModel | null = null;
  private _total = el('div', { class: 'pspx-total' });
  private _series = el('div');
  private _owners = el('div', {
    role: 'list',
    'aria-label': 'Live buffers by owner, the largest first'
  });
  private _more = el('div');
  private _note = el('div');
  private _status = el('div', { role: 'status', class: 'pspx-muted' });
  private _rows: Rows<BufferRow>;
  private _drawn = new Drawn();
  private _points: readonly MemoryRow[] | null = null;
}

const WIDTH = 600;
const HEIGHT = 90;

/** Bytes each time that they were looked at, as steps, with the numbers at the pointer. */
function series(points: readonly MemoryRow[]): HTMLElement {
  const most = points.reduce((max, point) => Math.max(max, point.bytes), 1);
  const x = (i: number) => (WIDTH * i) / points.length;
  const y = (bytes: number) => HEIGHT - 2 - ((HEIGHT - 4) * bytes) / most;
  const path = points
    .map((p, i) => `${i ? 'V' : `M0,${HEIGHT}V`}${y(p.bytes).toFixed(1)}H${x(i + 1).toFixed(1)}`)
    .join('');
  const last = points[points.length - 1];
  const peak = points.find(point => point.bytes === most)!;
  const cells = points.filter(point => point.count !== null).length;
  const told = el('figcaption', { class: 'pspx-muted' });
  const tell = (point: MemoryRow | null) =>
    replace(told, point ? words(point) : `At most ${words(peak)}.`);
  const mark = svg('line', { y1: 0, y2: HEIGHT, class: 'pspx-series-mark' });
  const picture = svg(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      class: 'pspx-series',
      role: 'img',
      'aria-label':
        `Bytes alive at ${points.length} times, at the ends of ${cells} ${cells === 1 ? 'cell' : 'cells'} among them: ` +
        `from ${size(points[0].bytes)} to ${size(last.bytes)}, at most ${words(peak)}`,
      onpointermove: (event: PointerEvent) => {
        const box = picture.getBoundingClientRect();
        const at = Math.floor(((event.clientX - box.left) / box.width) * points.length);
        const i = Math.min(points.length - 1, Math.max(0, at));
        tell(points[i]);
        mark.setAttribute('x1', String(x(i + 0.5)));
        mark.setAttribute('x2', String(x(i + 0.5)));
      },
      onpointerleave: () => tell(null)
    },
    svg('path', { d: `${path}V${HEIGHT}Z`, class: 'pspx-series-area' }),
    svg('path', { d: path, class: 'pspx-series-line' }),
    mark
  );
  tell(null);
  return el('figure', null, picture, told);
}

/** How much was alive, and when: what was looked at when no cell had just ended has its time only. */
function words({ bytes, count, time }: MemoryRow): string {
  const when =
    count === null ? new Date(1000 * time).toLocaleTimeString() : `the end of In[${count}]`;
  return `${size(bytes)} at ${when}`;
}
