/**
 * *Time*: where the time of each cell went, and, while it is measured, the device's time by function
 * and by line.
 */

import type { CellRow, LineRow, ProgramRow } from '../contract';
import type { KernelModel } from '../model';
import { count, duration, el, replace, said, size, svg } from '../shared';
import { Rows } from './rows';
import {
  Drawn,
  forgottenNote,
  heads,
  empty,
  type Page,
  percent,
  placeLink,
  shareBar,
  type Tab
} from './tab';

/** The parts of a cell's time, in the order in which they are drawn. */
export const PARTS = [
  { key: 'trace', hint: 'running your function once, to write the program down' },
  { key: 'lower', hint: 'the program as StableHLO' },
  { key: 'compile', hint: 'XLA, or the cache' },
  { key: 'device', hint: 'waiting for the device' },
  { key: 'transfer', hint: 'copies between the device and Python' },
  { key: 'python', hint: 'your Python code and all else' },
  { key: 'idle', hint: 'waiting for something else: input, files, sleep' }
] as const;

/** How many lines and functions are listed. */
const SLOWEST = 10;

/** How many points the course of a function has. */
const COURSE = 30;

export class TimeTab implements Tab {
  readonly name = 'time';
  readonly label = 'Time';
  readonly topics = ['cells', 'programs', 'lines'] as const;
  readonly node: HTMLElement;

  constructor(private _page: Page) {
    this._profile = el('input', {
      type: 'checkbox',
      onchange: () => void this._switch()
    }) as HTMLInputElement;
    this.node = el(
      'div',
      { class: 'pspx-stack' },
      el(
        'div',
        { class: 'pspx-row' },
        el(
          'label',
          {
            title:
              'Every cell runs under the profiler of XLA, which slows it a little; the lines of the notebook show their share'
          },
          this._profile,
          ' Measure device time by line'
        ),
        this._status
      ),
      this._lines,
      this._functions,
      el('h2', null, 'Cells'),
      legend(),
      this._cells,
      this._more,
      this._note
    );
    this._rows = new Rows(this._cells, this._more, row => this._cell(row));
  }

  show(model: KernelModel): void {
    if (this._drawn.isOther(model)) {
      this._model = model;
      this._wished = null;
      this._rows.forget();
      this._open.clear();
      this._courses.clear();
      replace(this._status);
    }
    this._profile.checked = this._wished ?? model.profiling;
    const cells = model.tables.cells;
    this._rows.update([...cells.inOrder()].reverse());
    replace(
      this._note,
      cells.size ? forgottenNote(cells.forgotten) : empty(cells, 'No cell has run yet.')
    );
    this._showLines(model);
    this._showFunctions(model);
  }

  private async _switch(): Promise<void> {
    const model = this._model!;
    // What the user chose stands until the kernel has answered.
    this._wished = this._profile.checked;
    const answer = await model.profile(this._wished);
    this._wished = null;
    if (model === this._model) {
      this._profile.checked = model.profiling;
      replace(this._status, said(answer.text, 200));
    }
  }

  private _cell(row: CellRow): HTMLElement {
    const place = { text: `In[${row.count}]`, cell: row.cell, file: '', line: 1 };
    const open = el('details', {
      ontoggle: event => {
        this._open[(event.target as HTMLDetailsElement).open ? 'add' : 'delete'](row.id);
      }
    }) as HTMLDetailsElement;
    open.open = this._open.has(row.id);
    open.append(el('summary', null, cellBar(row)), cellTable(row));
    return el(
      'div',
      { class: 'pspx-entry', role: 'listitem' },
      el(
        'div',
        { class: 'pspx-entry-head' },
        placeLink(place, this._page),
        el('span', { class: 'pspx-code pspx-ellipsis' }, said(row.head, 80)),
        row.status === 'running'
          ? el('span', { class: 'pspx-good' }, 'running')
          : row.status === 'error' && el('span', { class: 'pspx-error' }, 'error'),
        el('span', { class: 'pspx-number' }, row.status === 'running' ? '' : duration(row.wall))
      ),
      open
    );
  }

  private _showLines(model: KernelModel): void {
    const rows = model.tables.lines.inOrder();
    if (rows === this._linesDrawn) {
      return;
    }
    this._linesDrawn = rows;
    if (rows.length) {
      replace(this._status); // It told what was to come.
    }
    const total = rows.reduce((sum, row) => sum + row.seconds, 0);
    const slowest = [...rows].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
    replace(
      this._lines,
      rows.length > 0 && [
        el('h2', null, 'Device time by line'),
        el(
          'table',
          { class: 'pspx-table pspx-wide' },
          el(
            'caption',
            null,
            `Of each line the last measured cell that had work of it, as in the margin of the cells: ${duration(total)} in all, on ${rows.length} lines${rows.length > SLOWEST ? `; the ${SLOWEST} slowest` : ''}. Hatched: shares of fusions that several lines have part in.`
          ),
          heads('line', 'share', 'time', 'runs'),
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
    return el(
      'tr',
      null,
      el('th', { scope: 'row', class: 'pspx-left' }, placeLink(row.at, this._page)),
      el(
        'td',
        { class: 'pspx-grow', title: percent(row.seconds, total) },
        shareBar(percent(row.seconds - row.shared, total), percent(row.shared, total))
      ),
      el(
        'td',
        { title: row.shared ? `${duration(row.shared)} of it are shares of fusions` : null },
        duration(row.seconds)
      ),
      el('td', null, count(row.runs))
    );
  }

  private _showFunctions(model: KernelModel): void {
    const rows = model.tables.programs.inOrder();
    if (rows === this._functionsDrawn) {
      return;
    }
    this._functionsDrawn = rows;
    const measured = rows
      .filter((row): row is ProgramRow & { device: number } => row.device !== null)
      .sort((a, b) => b.device - a.device);
    const total = measured.reduce((sum, row) => sum + row.device, 0);
    measured.forEach(row => this._follow(row));
    replace(
      this._functions,
      measured.length > 0 && [
        el('h2', null, 'Device time by function'),
        el(
          'table',
          { class: 'pspx-table pspx-wide' },
          el(
            'caption',
            null,
            'Sums over all cells that were measured; the curve is the course of a call’s time.'
          ),
          heads('function', 'share', 'sum', 'calls'),
          el(
            'tbody',
            null,
            measured
              .slice(0, SLOWEST)
              .map(row =>
                el(
                  'tr',
                  null,
                  el(
                    'th',
                    { scope: 'row', class: 'pspx-left pspx-code', title: row.signature },
                    said(row.name, 40)
                  ),
                  el(
                    'td',
                    { class: 'pspx-grow', title: percent(row.device, total) },
                    shareBar(percent(row.device, total)),
                    sparkline(this._courses.get(row.id)!.each)
                  ),
                  el('td', null, duration(row.device)),
                  el(
                    'td',
                    null,
                    row.calls ? `${count(row.calls)} × ${duration(row.device / row.calls)}` : '–',
                    roofNote(row.roof)
                  )
                )
              )
          )
        )
      ]
    );
  }

  /** Remember how long a call took on average since the last look. */
  private _follow(row: ProgramRow & { device: number }): void {
    const before = this._courses.get(row.id) ?? { calls: 0, device: 0, each: [] };
    const calls = row.calls ?? 0;
    if (calls > before.calls) {
      const each = (row.device - before.device) / (calls - before.calls);
      this._courses.set(row.id, {
        calls,
        device: row.device,
        each: [...before.each.slice(1 - COURSE), each]
      });
    } else {
      this._courses.set(row.id, before);
    }
  }

  private _model: KernelModel | null = null;
  private _drawn = new Drawn();
  private _profile: HTMLInputElement;
  private _wished: boolean | null = null;
  private _status = el('span', { class: 'pspx-muted', role: 'status' });
  private _lines = el('div');
  private _functions = el('div');
  private _cells = el('div', { role: 'list', 'aria-label': 'Runs of cells, the newest first' });
  private _more = el('div');
  private _note = el('div');
  private _rows: Rows<CellRow>;
  private _open = new Set<string>();
  private _courses = new Map<string, { calls: number; device: number; each: number[] }>();
  private _linesDrawn: readonly LineRow[] | null = null;
  private _functionsDrawn: readonly ProgramRow[] | null = null;
}

/** How near a program comes to what this machine can do, where that is known. */
function roofNote(roof: ProgramRow['roof']): HTMLElement | null {
  if (!roof) {
    return null;
  }
  const { flops, intensity, part, bound } = roof;
  const [peak, unit] =
    bound === 'memory' ? ['the memory moves', 'bytes/s'] : ['the arithmetic does', 'FLOP/s'];
  return el(
    'div',
    {
      class: 'pspx-muted pspx-small pspx-roof',
      title:
        `${(flops / 1e9).toPrecision(3)} GFLOP/s, ${intensity.toPrecision(3)} FLOPs for each byte: ` +
        `so ${bound} bounds it, and this is its part of what ${peak} at best on this machine`
    },
    `${part < 0.01 ? '<1' : Math.round(100 * part)}% of peak ${unit}`
  );
}

/** The course of a number as a small line; nothing where there is only one. */
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

/** The time of a cell as one bar. What the device did afterwards stands behind it. */
function cellBar(row: CellRow): HTMLElement {
  const after = row.after ?? 0;
  const whole = row.wall + after;
  const told = PARTS.filter(({ key }) => row[key] > 0);
  const width = (seconds: number) => `width:${percent(seconds, whole)}`;
  const words = told.map(({ key }) => `${key} ${duration(row[key])}`);
  if (after) {
    words.push(`the device went on for ${duration(after)}`);
  }
  return el(
    'span',
    {
      class: 'pspx-bar',
      role: 'img',
      'aria-label': words.join(', ') || 'no time yet',
      title: words.join('\n')
    },
    told.map(({ key }) =>
      el('span', { class: `pspx-part pspx-part-${key}`, style: width(row[key]) })
    ),
    after > 0 && el('span', { class: 'pspx-part pspx-part-after', style: width(after) })
  );
}

function cellTable(row: CellRow): HTMLElement {
  const line = (name: string, seconds: number, look: string) =>
    el(
      'tr',
      null,
      el(
        'th',
        { scope: 'row', class: 'pspx-left' },
        el('span', { class: `pspx-swatch ${look}` }),
        name
      ),
      el('td', null, duration(seconds)),
      el('td', null, percent(seconds, row.wall))
    );
  const sources = Object.entries(row.sources)
    .filter(([, n]) => n)
    .map(([from, n]) => `${n} from ${from}`);
  const moved = Object.entries(row.bytes)
    .filter(([, n]) => n)
    .map(([way, n]) => `${way} ${size(n)}`);
  return el(
    'div',
    { class: 'pspx-entry-body' },
    el(
      'table',
      { class: 'pspx-table' },
      el('caption', { class: 'pspx-hidden' }, 'Where the time of this cell went'),
      heads('part', 'time', 'share'),
      el(
        'tbody',
        null,
        PARTS.filter(({ key }) => row[key] > 0).map(({ key }) =>
          line(key, row[key], `pspx-part-${key}`)
        )
      )
    ),
    row.after
      ? el('p', null, `The device went on for ${duration(row.after)} after the cell.`)
      : row.working && el('p', null, 'The device is still working.'),
    sources.length > 0 && el('p', null, 'Programs: ', said(sources.join(', '))),
    moved.length > 0 && el('p', null, 'Copied: ', said(moved.join(', ')))
  );
}

function legend(): HTMLElement {
  return el(
    'ul',
    { class: 'pspx-legend', 'aria-label': 'Colours of the bars' },
    PARTS.map(({ key, hint }) =>
      el('li', { title: hint }, el('span', { class: `pspx-swatch pspx-part-${key}` }), key)
    ),
    el(
      'li',
      { title: 'what the device still did when the cell had ended' },
      el('span', { class: 'pspx-swatch pspx-part-after' }),
      'after the cell'
    )
  );
}
