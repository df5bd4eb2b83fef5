/**
 * *Time*: where the time of each cell went, and, while it is measured, device time by function and by
 * line.
 */

import type { CellRow, LineRow, ProgramRow, Roof } from '../contract';
import type { ISession } from '../model/session';
import { el, replace, said, svg } from '../views/dom';
import { titleOf } from '../views/titles';
import { trans } from '../views/trans';
import { count, duration } from '../views/units';
import { cellBar, cellTable, legend, PARTS, type Times } from './cellbar';
import { Rows } from './rows';
import {
  empty,
  forgottenNote,
  heads,
  type ITab,
  type ITabPage,
  percent,
  placeLink,
  shareBar
} from './tab';

/** How many lines and functions are listed. */
const SLOWEST = 10;

/** How many points the curve of a function has. */
const COURSE = 30;

type Measured = ProgramRow & { device: number };

/** The mean time of a call, each time that there were new calls. */
type Course = { calls: number; device: number; each: readonly number[] };

export class TimeTab implements ITab {
  readonly name = 'time';
  readonly label = trans.__('Time');
  readonly topics = ['cells', 'programs', 'lines'] as const;
  readonly node: HTMLElement;

  constructor(private readonly _page: ITabPage) {
    this._profile = el('input', { type: 'checkbox', onchange: () => this._switch() });
    const hint = trans.__(
      'Runs each cell under the profiler of XLA, which slows it slightly; the margin of the notebook shows the time of each line'
    );
    this.node = el(
      'div',
      { class: 'pspx-stack' },
      el(
        'div',
        { class: 'pspx-row' },
        el('label', { title: hint }, this._profile, ` ${trans.__('Measure device time by line')}`),
        this._status
      ),
      this._lines,
      this._functions,
      el('div', { class: 'pspx-row' }, el('h2', null, trans.__('Cells')), this._sort),
      this._total,
      legend(),
      this._cells,
      this._more,
      this._note
    );
    this._sort.append(
      el('option', { value: 'newest' }, trans.__('newest first')),
      el('option', { value: 'longest' }, trans.__('longest first'))
    );
    this._sort.addEventListener('change', () => this._session && this._showCells(this._session));
    this._rows = new Rows(this._cells, this._more, row => this._cell(row));
  }

  show(session: ISession): void {
    if (session !== this._session) {
      this._session = session;
      this._wished = null;
      this._rows.forget();
      this._open.clear();
      this._courses.clear();
      replace(this._status);
    }
    this._profile.checked = this._wished ?? session.isProfiling;
    const { cells, lines, programs } = session.tables;
    this._showCells(session);
    replace(
      this._note,
      cells.size ? forgottenNote(cells.forgotten) : empty(cells, trans.__('No cells have run yet.'))
    );
    this._showLines(lines.inOrder());
    this._showFunctions(programs.inOrder());
  }

  private async _switch(): Promise<void> {
    const session = this._session;
    if (!session) {
      return;
    }
    // The choice of the user stands until the kernel has answered.
    this._wished = this._profile.checked;
    const answer = await session.profile(this._wished);
    this._wished = null;
    if (session === this._session) {
      this._profile.checked = session.isProfiling;
      replace(this._status, said(answer.text, 200));
    }
  }

  // ---- Cells ---------------------------------------------------------------------------------

  private _showCells(session: ISession): void {
    const rows = session.tables.cells.inOrder();
    const newest = [...rows].reverse();
    const isByTime = this._sort.value === 'longest';
    this._rows.update(isByTime ? newest.sort((a, b) => lasted(b) - lasted(a)) : newest);
    this._sort.hidden = rows.length < 2;
    if (rows === this._cellsDrawn) {
      return;
    }
    this._cellsDrawn = rows;
    // One scale for all bars, which changes without their being drawn again.
    const longest = rows.reduce((most, row) => Math.max(most, lasted(row)), 0);
    this._cells.style.setProperty('--pspx-longest', String(longest || 1));
    const sum = rows.reduce((all, row) => added(all, row), { ...NOTHING });
    replace(
      this._total,
      rows.length > 1 && [
        trans.__('%1 runs took %2 in total.', count(rows.length), duration(sum.wall)),
        el('div', { class: 'pspx-total-bar' }, cellBar(sum))
      ]
    );
  }

  private _cell(row: CellRow): HTMLElement {
    const place = { text: `In[${row.count}]`, cell: row.cell, file: '', line: 1 };
    const details = el(
      'details',
      {
        open: this._open.has(row.id),
        ontoggle: () => {
          this._open[details.open ? 'add' : 'delete'](row.id);
        }
      },
      el('summary', null, cellBar(row)),
      cellTable(row)
    );
    const isRunning = row.status === 'running';
    return el(
      'div',
      { class: 'pspx-entry', role: 'listitem' },
      el(
        'div',
        { class: 'pspx-entry-head' },
        placeLink(place, this._page),
        el('span', { class: 'pspx-code pspx-ellipsis' }, said(row.head, 80)),
        isRunning && el('span', { class: 'pspx-good' }, trans.__('running')),
        row.status === 'error' && el('span', { class: 'pspx-error' }, trans.__('error')),
        el('span', { class: 'pspx-number' }, isRunning ? '' : duration(row.wall))
      ),
      details
    );
  }

  // ---- Lines ---------------------------------------------------------------------------------

  private _showLines(rows: readonly LineRow[]): void {
    if (rows === this._linesDrawn) {
      return;
    }
    this._linesDrawn = rows;
    if (rows.length) {
      replace(this._status); // It announced what is now here.
    }
    const total = rows.reduce((sum, row) => sum + row.seconds, 0);
    const slowest = [...rows].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
    const n = rows.length;
    const caption = [
      trans._n(
        'Device time per line, from the last profiled cell that ran it (%2 line, %3 total).',
        'Device time per line, from the last profiled cell that ran it (%2 lines, %3 total).',
        n,
        count(n),
        duration(total)
      ),
      n > SLOWEST && trans.__('The %1 slowest are listed.', SLOWEST),
      trans.__('Hatched: shares of fusions of several lines.')
    ];
    const titles = heads(
      trans.__('line'),
      trans.__('code and share'),
      trans.__('time'),
      trans.__('runs')
    );
    titles.querySelectorAll('th')[1]?.classList.add('pspx-left');
    replace(
      this._lines,
      n > 0 && [
        el('h2', null, trans.__('Device time by line')),
        el(
          'table',
          { class: 'pspx-table pspx-wide' },
          el('caption', null, caption.filter(Boolean).join(' ')),
          titles,
          el(
            'tbody',
            null,
            slowest.map(row => this._line(row, total))
          )
        )
      ]
    );
  }

  private _line(row: LineRow, total: number): HTMLElement {
    const shared = row.shared
      ? trans.__('%1 of it are shares of fusions', duration(row.shared))
      : null;
    return el(
      'tr',
      null,
      el('th', { scope: 'row', class: 'pspx-left' }, placeLink(row.at, this._page)),
      el(
        'td',
        { class: 'pspx-left pspx-rest', title: percent(row.seconds, total) },
        el(
          'div',
          { class: 'pspx-code pspx-ellipsis pspx-line-code', title: row.code },
          said(row.code, 200)
        ),
        shareBar(percent(row.seconds - row.shared, total), percent(row.shared, total))
      ),
      el('td', { title: shared }, duration(row.seconds)),
      el('td', null, count(row.runs))
    );
  }

  // ---- Functions -----------------------------------------------------------------------------

  private _showFunctions(rows: readonly ProgramRow[]): void {
    if (rows === this._functionsDrawn) {
      return;
    }
    this._functionsDrawn = rows;
    const measured = rows
      .filter((row): row is Measured => row.device !== null)
      .sort((a, b) => b.device - a.device);
    const total = measured.reduce((sum, row) => sum + row.device, 0);
    const listed = measured.map(row => ({ row, course: this._follow(row) })).slice(0, SLOWEST);
    replace(
      this._functions,
      listed.length > 0 && [
        el('h2', null, trans.__('Device time by function')),
        el(
          'table',
          { class: 'pspx-table pspx-wide' },
          el(
            'caption',
            null,
            trans.__('Totals over all profiled cells. The curve shows the time per call.')
          ),
          heads(trans.__('function'), trans.__('share'), trans.__('total'), trans.__('calls')),
          el(
            'tbody',
            null,
            listed.map(({ row, course }) => functionLine(row, course, total))
          )
        )
      ]
    );
  }

  /** Remember the mean time of the calls since the last look. */
  private _follow(row: Measured): Course {
    const before = this._courses.get(row.id) ?? { calls: 0, device: 0, each: [] };
    const calls = row.calls ?? 0;
    const each = (row.device - before.device) / (calls - before.calls);
    const now =
      calls > before.calls
        ? { calls, device: row.device, each: [...before.each.slice(1 - COURSE), each] }
        : before;
    this._courses.set(row.id, now);
    return now;
  }

  private readonly _profile: HTMLInputElement;
  private readonly _status = el('span', { class: 'pspx-muted', role: 'status' });
  private readonly _lines = el('div');
  private readonly _functions = el('div');
  private readonly _cells = el('div', {
    role: 'list',
    'aria-label': trans.__('Runs of cells, the newest first')
  });
  private readonly _sort = el('select', {
    class: 'pspx-field',
    'aria-label': trans.__('Order of the cells')
  });
  private readonly _total = el('div', { class: 'pspx-muted pspx-sum' });
  private readonly _more = el('div');
  private readonly _note = el('div');
  private readonly _rows: Rows<CellRow>;
  private readonly _open = new Set<string>();
  private readonly _courses = new Map<string, Course>();
  private _session: ISession | null = null;
  private _wished: boolean | null = null;
  private _cellsDrawn: readonly CellRow[] | null = null;
  private _linesDrawn: readonly LineRow[] | null = null;
  private _functionsDrawn: readonly ProgramRow[] | null = null;
}

const NOTHING: Times = {
  wall: 0,
  after: 0,
  trace: 0,
  lower: 0,
  compile: 0,
  device: 0,
  transfer: 0,
  python: 0,
  idle: 0
};

/** How long a cell took, with the work of the device after it. */
function lasted(row: Times): number {
  return row.wall + (row.after ?? 0);
}

function added(sum: Times, row: Times): Times {
  for (const part of PARTS) {
    sum[part] += row[part];
  }
  sum.wall += row.wall;
  sum.after = (sum.after ?? 0) + (row.after ?? 0);
  return sum;
}

function functionLine(row: Measured, course: Course, total: number): HTMLElement {
  const calls = row.calls
    ? `${count(row.calls)} × ${duration(row.device / row.calls)}`
    : count(null);
  return el(
    'tr',
    null,
    el(
      'th',
      { scope: 'row', class: 'pspx-left pspx-code', title: row.signature },
      said(titleOf(row), 40)
    ),
    el(
      'td',
      { class: 'pspx-grow', title: percent(row.device, total) },
      shareBar(percent(row.device, total)),
      sparkline(course.each)
    ),
    el('td', null, duration(row.device)),
    el('td', null, calls, row.roof && roofNote(row.roof))
  );
}

/** How near a program comes to the peak of this machine. */
function roofNote({ flops, intensity, part, bound }: Roof): HTMLElement {
  const percents = Math.round(100 * part);
  // The peak is the best of what was measured, in half a second of a machine that others use, too.
  const share = part < 0.01 ? '<1' : percents > 100 ? '>100' : String(percents);
  const [text, limit] =
    bound === 'memory'
      ? [trans.__('%1% of peak bytes/s', share), trans.__('memory bandwidth')]
      : [trans.__('%1% of peak FLOP/s', share), trans.__('arithmetic')];
  const title = trans.__(
    '%1 GFLOP/s at %2 FLOPs per byte: %3 is the limit. The percentage is relative to the measured peak of this machine.',
    (flops / 1e9).toPrecision(3),
    intensity.toPrecision(3),
    limit
  );
  return el('div', { class: 'pspx-muted pspx-small pspx-roof', title }, text);
}

/** The course of a number as a small line; nothing if there is only one number. */
function sparkline(values: readonly number[]): SVGElement | null {
  if (values.length < 2) {
    return null;
  }
  const most = Math.max(...values) || 1;
  const points = values.map(
    (value, i) => `${((38 * i) / (values.length - 1) + 1).toFixed(1)},${11 - (10 * value) / most}`
  );
  return svg(
    'svg',
    {
      class: 'pspx-sparkline',
      viewBox: '0 0 40 12',
      preserveAspectRatio: 'none',
      'aria-hidden': 'true'
    },
    svg('polyline', { points: points.join(' ') })
  );
}
