/** *Memory*: live buffers by owner, and how much was alive at the end of each cell. */

import type { BufferRow, MemoryRow } from '../contract';
import type { ISession } from '../model/session';
import { button, cut, el, replace, said, svg } from '../views/dom';
import { trans } from '../views/trans';
import { count, size } from '../views/units';
import { Rows } from './rows';
import { empty, forgottenNote, type ITab, type ITabPage, shareBar } from './tab';

export class MemoryTab implements ITab {
  readonly name = 'memory';
  readonly label = trans.__('Memory');
  readonly topics = ['buffers', 'memory'] as const;
  readonly node: HTMLElement;

  constructor(private readonly _page: ITabPage) {
    this.node = el(
      'div',
      { class: 'pspx-stack' },
      this._total,
      this._series,
      el('h2', null, trans.__('By owner')),
      this._owners,
      this._more,
      this._note,
      this._status
    );
    this._rows = new Rows(this._owners, this._more, row => this._owner(row));
  }

  show(session: ISession): void {
    if (session !== this._session) {
      this._session = session;
      this._points = null;
      replace(this._status);
    }
    const { buffers } = session.tables;
    const rows = [...buffers.inOrder()].sort((a, b) => b.bytes - a.bytes || a.order - b.order);
    const total = rows.reduce((sum, row) => sum + row.bytes, 0);
    // The bars are parts of a whole that changes, without being drawn again.
    this._owners.style.setProperty('--pspx-whole', String(total || 1));
    this._rows.update(rows);
    const n = rows.length;
    replace(
      this._total,
      el('strong', null, size(total)),
      ` ${trans._n('alive, %2 owner', 'alive, %2 owners', n, count(n))}`
    );
    replace(
      this._note,
      n ? forgottenNote(buffers.forgotten) : empty(buffers, trans.__('No arrays are alive.'))
    );
    const points = session.tables.memory.inOrder();
    if (points !== this._points) {
      this._points = points;
      replace(this._series, points.length > 1 && series(points));
    }
  }

  private _owner(row: BufferRow): HTMLElement {
    const { kind, hint } = KINDS[row.kind]();
    const about = [
      row.what,
      row.device && trans.__('on %1', row.device),
      row.cell && trans.__('set in %1', row.cell),
      row.also && trans.__('also: %1', row.also)
    ];
    return el(
      'div',
      { class: 'pspx-entry', role: 'listitem' },
      el(
        'div',
        { class: 'pspx-entry-head' },
        el('span', { class: 'pspx-code pspx-ellipsis', title: hint }, said(row.owner, 60)),
        row.kind !== 'variable' && el('span', { class: 'pspx-muted' }, kind),
        el('span', { class: 'pspx-number' }, size(row.bytes)),
        row.canFree &&
          button('pspx-button', () => this._free(row), trans.__('Free…'), {
            title: trans.__('Remove %1 and delete its arrays', row.owner)
          })
      ),
      shareBar(`calc(100% * ${row.bytes} / var(--pspx-whole))`),
      el(
        'div',
        { class: 'pspx-muted pspx-small pspx-broken' },
        said(about.filter(Boolean).join(' · '), 120)
      )
    );
  }

  private async _free(row: BufferRow): Promise<void> {
    const session = this._session;
    const text = trans.__(
      'This removes the variable %1 (%2, %3) from the notebook and deletes its arrays, unless something else holds them.',
      row.owner,
      row.what,
      size(row.bytes)
    );
    const title = trans.__('Free %1?', cut(row.owner, 40));
    if (session && (await this._page.confirm(title, text, trans.__('Free')))) {
      const answer = await session.ask({ what: 'free', id: row.id });
      const look = answer.ok ? null : 'pspx-error';
      replace(this._status, el('span', { class: look }, said(answer.text, 400)));
    }
  }

  private readonly _total = el('div', { class: 'pspx-total' });
  private readonly _series = el('div');
  private readonly _owners = el('div', {
    role: 'list',
    'aria-label': trans.__('Live buffers by owner, the largest first')
  });
  private readonly _more = el('div');
  private readonly _note = el('div');
  private readonly _status = el('div', { role: 'status', class: 'pspx-muted' });
  private readonly _rows: Rows<BufferRow>;
  private _session: ISession | null = null;
  private _points: readonly MemoryRow[] | null = null;
}

const KINDS: Record<BufferRow['kind'], () => { kind: string; hint: string }> = {
  variable: () => ({
    kind: trans.__('variable'),
    hint: trans.__('A variable of the notebook')
  }),
  output: () => ({
    kind: trans.__('output'),
    hint: trans.__('An output that the notebook keeps')
  }),
  traceback: () => ({
    kind: trans.__('traceback'),
    hint: trans.__('The frames of the last error')
  }),
  executable: () => ({
    kind: trans.__('executable'),
    hint: trans.__('Constants of a compiled function')
  }),
  unowned: () => ({
    kind: trans.__('no owner'),
    hint: trans.__('Referenced, but by nothing that the notebook names')
  })
};

const WIDTH = 600;
const HEIGHT = 90;

/** The bytes alive at each time as steps, with the numbers at the pointer. */
function series(points: readonly MemoryRow[]): HTMLElement {
  const most = points.reduce((max, point) => Math.max(max, point.bytes), 1);
  const x = (i: number) => (WIDTH * i) / points.length;
  const y = (bytes: number) => HEIGHT - 2 - ((HEIGHT - 4) * bytes) / most;
  const path = points
    .map((p, i) => `${i ? 'V' : `M0,${HEIGHT}V`}${y(p.bytes).toFixed(1)}H${x(i + 1).toFixed(1)}`)
    .join('');
  const peak = points.find(point => point.bytes === most);
  const told = el('figcaption', { class: 'pspx-muted' });
  const tell = (point: MemoryRow | undefined) =>
    replace(told, point ? words(point) : trans.__('Peak: %1', words(peak)));
  const mark = svg('line', { y1: 0, y2: HEIGHT, class: 'pspx-series-mark' });
  const picture: SVGElement = svg(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      class: 'pspx-series',
      role: 'img',
      'aria-label': trans.__(
        'Bytes alive at %1 times, %2 of them at the end of a cell: first %3, last %4, peak %5',
        count(points.length),
        count(points.filter(point => point.count !== null).length),
        size(points[0]?.bytes),
        size(points.at(-1)?.bytes),
        words(peak)
      ),
      onpointermove: event => {
        const box = picture.getBoundingClientRect();
        const at = Math.floor(((event.clientX - box.left) / box.width) * points.length);
        const i = Math.min(points.length - 1, Math.max(0, at));
        tell(points[i]);
        mark.setAttribute('x1', String(x(i + 0.5)));
        mark.setAttribute('x2', String(x(i + 0.5)));
      },
      onpointerleave: () => tell(undefined)
    },
    svg('path', { d: `${path}V${HEIGHT}Z`, class: 'pspx-series-area' }),
    svg('path', { d: path, class: 'pspx-series-line' }),
    mark
  );
  tell(undefined);
  return el('figure', null, picture, told);
}

/** How much was alive, and at the end of which cell, or at what time. */
function words(point: MemoryRow | undefined): string {
  if (!point) {
    return '';
  }
  const when =
    point.count === null
      ? new Date(1000 * point.time).toLocaleTimeString()
      : trans.__('the end of %1', `In[${point.count}]`);
  return trans.__('%1 at %2', size(point.bytes), when);
}
