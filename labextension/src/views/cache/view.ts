/**
 * The compiled programs of a session as a table: where each was found, what it took, and why the
 * programs that were there before would not do.
 */

import type { Place, ProgramRow } from '../../contract';
import { button, coded, cut, el, messageOf, replace, said, stylesheet } from '../dom';
import { LOOK } from '../look';
import { trans } from '../trans';
import { count, duration } from '../units';
import { type Column, columns, found, total } from './columns';
import { fits, type Fold, Folds } from '../folds';
import { keepFocus } from './focus';
import { CACHE_STYLE } from './style';

/** Something done to the program with that id; the status line shows what comes back. */
type Act = (id: string) => Promise<string>;

/** A button without an action is not drawn. */
export type CacheActions = {
  evict?: Act;
  pin?: Act;
  unpin?: Act;
  clear?: () => Promise<string>;
  show?: (id: string) => void;
  reveal?: (place: Place) => void;
};

export type CacheView = {
  /** Takes all rows, in any order; a row that did not change is the same object as before. */
  update(rows: readonly ProgramRow[]): void;
  /** The next rows are of another session, whose ids begin anew. */
  forget(): void;
  /** Whether anything can be done just now. */
  enable(isEnabled: boolean): void;
  dispose(): void;
};

/** How many rows are drawn before somebody asks for more. */
const PAGE = 200;

/** Below this width, in pixels, only the columns that are not `wide` are shown. */
const NARROW = 560;

export function cacheView(host: HTMLElement, actions: CacheActions = {}): CacheView {
  const view = new View(actions);
  host.append(view.root);
  return view;
}

class View implements CacheView {
  readonly root: HTMLElement;

  constructor(private readonly _actions: CacheActions) {
    this._search = el('input', {
      type: 'search',
      class: 'pspx-field',
      placeholder: trans.__('filter by name or type'),
      'aria-label': trans.__('Filter the programs by name or type'),
      oninput: () => {
        this._wanted = this._search.value.trim().toLowerCase();
        this._shown = PAGE;
        this._draw();
      }
    });
    this.root = el(
      'div',
      {
        class: 'pspx-view pspx-cache',
        role: 'group',
        'aria-label': trans.__('Compiled programs')
      },
      stylesheet(LOOK + CACHE_STYLE),
      el('div', { class: 'pspx-row' }, this._search, this._summary, this._clearing),
      el(
        'div',
        {
          class: 'pspx-cache-scroll',
          // Focusable, so that the keyboard can scroll it.
          tabindex: 0,
          role: 'group',
          'aria-label': trans.__('Table of programs')
        },
        el(
          'table',
          { class: 'pspx-table' },
          el('caption', { class: 'pspx-hidden' }, trans.__('Compiled programs, the newest first')),
          el('thead', null, this._head),
          this._body
        )
      ),
      this._more,
      this._status
    );
    this._observer = new ResizeObserver(() => this._resize());
    this._observer.observe(this.root);
    this._offerClear();
    this._draw();
  }

  update(rows: readonly ProgramRow[]): void {
    this._rows = rows;
    this._draw();
  }

  forget(): void {
    this._open.clear();
    this._folds.forget();
    this._drawn.clear();
    this._shown = PAGE;
    replace(this._status);
  }

  enable(isEnabled: boolean): void {
    if (isEnabled !== this._isEnabled) {
      this._isEnabled = isEnabled;
      this._offerClear();
      this._draw();
    }
  }

  dispose(): void {
    this._observer.disconnect();
    this.root.remove();
  }

  private _resize(): void {
    const isNarrow = this.root.clientWidth < NARROW;
    if (isNarrow !== this._isNarrow) {
      this._isNarrow = isNarrow;
      this.root.classList.toggle('pspx-cache-narrow', isNarrow);
      this._drawn.clear();
      this._draw();
    }
  }

  private _columns(): readonly Column[] {
    return this._isNarrow ? this._all.filter(column => !column.wide) : this._all;
  }

  // ---- The table -----------------------------------------------------------------------------

  private _draw(): void {
    const restoreFocus = keepFocus(this._body, this._search);
    this._drawHead();
    const rows = this._chosen();
    const now = new Map<string, { row: ProgramRow; line: HTMLElement }>();
    const lines: HTMLElement[] = [];
    const isPlain = this._wanted !== '' || this._sortedBy !== '';
    const entries = isPlain ? this._folds.flat(rows) : this._folds.entries(rows);
    for (const entry of entries.slice(0, this._shown)) {
      if (entry.fold) {
        lines.push(this._foldLine(entry.fold));
        continue;
      }
      const { row } = entry;
      const before = this._drawn.get(row.id);
      const line = before?.row === row ? before.line : this._line(row);
      line.classList.toggle('pspx-inside', entry.isInside);
      now.set(row.id, { row, line });
      lines.push(line);
      if (this._open.has(row.id)) {
        lines.push(this._story(row));
      }
    }
    this._drawn = now;
    this._body.replaceChildren(...lines);
    restoreFocus();
    if (!rows.length) {
      const text = this._rows.length
        ? trans.__('No program matches the filter.')
        : trans.__('Nothing has been compiled yet.');
      this._body.append(
        el('tr', null, el('td', { class: 'pspx-left pspx-muted', colspan: 99 }, text))
      );
    }
    replace(
      this._more,
      entries.length > this._shown &&
        button(
          'pspx-button',
          () => {
            this._shown += 5 * PAGE;
            this._draw();
          },
          trans.__('Show more of %1', count(entries.length))
        )
    );
    this._summarize();
  }

  private _drawHead(): void {
    const focused = this.root.ownerDocument.activeElement?.getAttribute('data-pspx-column');
    replace(
      this._head,
      this._columns().map(column => {
        const direction = this._isDescending ? 'descending' : 'ascending';
        const sort = column.name === this._sortedBy ? direction : 'none';
        const arrow = { none: '', ascending: ' ▴', descending: ' ▾' }[sort];
        return el(
          'th',
          { scope: 'col', class: column.left ? 'pspx-left' : null, 'aria-sort': sort },
          button('pspx-quiet', () => this._sort(column), column.title + arrow, {
            title: column.hint,
            'data-pspx-column': column.name
          })
        );
      })
    );
    if (focused) {
      this._head.querySelector<HTMLElement>(`[data-pspx-column="${CSS.escape(focused)}"]`)?.focus();
    }
  }

  private _sort(column: Column): void {
    this._isDescending = column.name === this._sortedBy ? !this._isDescending : !column.left;
    this._sortedBy = column.name;
    this._draw();
  }

  /** The rows that fit the filter, in the order of the table. */
  private _chosen(): ProgramRow[] {
    const column = this._all.find(({ name }) => name === this._sortedBy);
    const sign = this._isDescending ? -1 : 1;
    return this._rows
      .filter(row => fits(row, this._wanted))
      .sort((a, b) => {
        const [x, y] = column ? [column.key(a), column.key(b)] : [0, 0];
        return x === y ? b.order - a.order : x < y ? -sign : sign;
      });
  }

  private _summarize(): void {
    const counts = { xla: 0, memory: 0, disk: 0 };
    let seconds = 0;
    for (const row of this._rows) {
      counts[row.found] += 1;
      seconds += total(row);
    }
    const parts = (['xla', 'memory', 'disk'] as const)
      .filter(where => counts[where])
      .map(where => `${count(counts[where])} ${found(where).text}`);
    const n = this._rows.length;
    const all = trans._n('%2 program', '%2 programs', n, count(n));
    const took = n ? trans.__('%1 in total', duration(seconds)) : '';
    replace(this._summary, [all, ...parts, took].filter(Boolean).join(' · '));
  }

  private _line(row: ProgramRow): HTMLElement {
    const cells = this._columns().map((column, i) =>
      i
        ? el('td', { class: column.left ? 'pspx-left' : null }, column.show(row))
        : this._name(row, column)
    );
    return el('tr', { class: 'pspx-cache-row' }, cells);
  }

  /** What functions of libraries compiled for one line, in one line. */
  private _foldLine({ id, at, rows, isOpen }: Fold): HTMLElement {
    const n = rows.length;
    const toggle = () => {
      this._folds.toggle(id);
      this._draw();
    };
    const text = trans._n('%2 library call', '%2 library calls', n, count(n));
    const place = at ? [said(at.text, 60), ' · '] : [];
    const label = el('span', null, isOpen ? '▾ ' : '▸ ', place, text);
    const name = button('pspx-quiet pspx-muted pspx-ellipsis pspx-cache-lines', toggle, label, {
      title: at ? `${at.text} · ${text}` : null,
      'aria-expanded': String(isOpen),
      'data-pspx-row': id,
      'data-pspx-act': 'open'
    });
    const seconds = rows.reduce((sum, row) => sum + total(row), 0);
    const before = this._columns().findIndex(column => column.name === 'total');
    const cells = this._columns()
      .slice(before)
      .map(({ name: column }) =>
        el('td', { class: 'pspx-muted' }, column === 'total' ? duration(seconds) : '')
      );
    return el(
      'tr',
      { class: 'pspx-cache-fold' },
      el('th', { scope: 'row', class: 'pspx-left', colspan: before }, name),
      cells
    );
  }

  private _name(row: ProgramRow, column: Column): HTMLElement {
    const name = button(
      'pspx-quiet pspx-code pspx-cache-name',
      () => {
        if (!this._open.delete(row.id)) {
          this._open.add(row.id);
        }
        name.setAttribute('aria-expanded', String(this._open.has(row.id)));
        this._draw();
      },
      column.show(row),
      {
        'aria-expanded': String(this._open.has(row.id)),
        'data-pspx-row': row.id,
        'data-pspx-act': 'open'
      }
    );
    return el(
      'th',
      { scope: 'row', class: 'pspx-left' },
      name,
      row.pinned && el('span', { class: 'pspx-muted' }, ` ${trans.__('pinned')}`),
      row.miss &&
        el(
          'span',
          { class: 'pspx-cache-mark', title: cut(row.miss.cause, 400) },
          ` ${trans.__('recompiled')}`
        )
    );
  }

  // ---- One program ---------------------------------------------------------------------------

  /** What a row tells when its name is clicked. */
  private _story(row: ProgramRow): HTMLElement {
    const { show, evict, reveal } = this._actions;
    const facts: Node[] = [];
    const fact = (name: string, value: Node | string) => {
      facts.push(el('dt', null, name), el('dd', null, value));
    };
    fact(trans.__('types'), said(`(${row.signature})`, 400));
    if (row.at) {
      const { at } = row;
      const place = said(at.text);
      fact(trans.__('called at'), reveal ? button('pspx-quiet', () => reveal(at), place) : place);
    }
    fact(trans.__('took'), took(row));
    if (row.equations !== null) {
      fact(trans.__('equations'), count(row.equations));
    }
    if (row.calls !== null) {
      const calls = count(row.calls);
      fact(
        trans.__('calls'),
        row.device === null ? calls : trans.__('%1; %2 on the device', calls, duration(row.device))
      );
    }
    if (row.miss) {
      fact(trans.__('reason'), coded(row.miss.cause, 400));
      if (row.miss.advice) {
        fact(trans.__('instead'), coded(row.miss.advice, 400));
      }
      fact(
        trans.__('cost'),
        trans.__(
          '%1; compiled %2 times so far, %3 of them from this line',
          duration(row.miss.seconds),
          count(row.miss.compiles),
          count(row.miss.here)
        )
      );
    }
    const pin = row.pinned ? this._actions.unpin : this._actions.pin;
    const buttons = [
      show && row.canShow && this._act(row, 'show', trans.__('Show'), () => show(row.id)),
      pin &&
        this._act(row, 'pin', row.pinned ? trans.__('Unpin') : trans.__('Pin'), () =>
          this._tell(pin(row.id))
        ),
      evict && this._act(row, 'evict', trans.__('Evict'), () => this._tell(evict(row.id)))
    ].filter(one => one instanceof Node);
    return el(
      'tr',
      { class: 'pspx-cache-story' },
      el(
        'td',
        { colspan: this._columns().length },
        el('dl', null, facts),
        buttons.length > 0 &&
          el(
            'div',
            { class: 'pspx-row' },
            buttons,
            !this._isEnabled && el('span', { class: 'pspx-muted' }, noKernel())
          )
      )
    );
  }

  private _act(row: ProgramRow, act: string, text: string, onclick: () => void): HTMLElement {
    return button('pspx-button', onclick, text, {
      disabled: !this._isEnabled,
      'data-pspx-row': row.id,
      'data-pspx-act': act
    });
  }

  // ---- All programs --------------------------------------------------------------------------

  private _offerClear(): void {
    const { clear } = this._actions;
    if (!clear) {
      return;
    }
    const ask = button('pspx-button', () => this._confirmClear(clear, back), trans.__('Clear…'), {
      disabled: !this._isEnabled,
      title: this._isEnabled ? null : noKernel()
    });
    const back = () => {
      replace(this._clearing, ask);
      ask.focus();
    };
    replace(this._clearing, ask);
  }

  private _confirmClear(clear: () => Promise<string>, back: () => void): void {
    const keep = button('pspx-button', back, trans.__('Keep'));
    const go = () => {
      back();
      this._tell(clear());
    };
    replace(
      this._clearing,
      trans.__('Evict all programs? The next calls recompile them.'),
      button('pspx-button', go, trans.__('Evict all')),
      keep
    );
    keep.focus();
  }

  private _tell(done: Promise<string>): void {
    done.then(
      text => replace(this._status, said(text, 400)),
      (error: unknown) => replace(this._status, said(messageOf(error), 400))
    );
  }

  private readonly _all = columns();
  private readonly _search: HTMLInputElement;
  private readonly _summary = el('span', { class: 'pspx-muted' });
  private readonly _clearing = el('span', { class: 'pspx-row' });
  private readonly _status = el('div', { role: 'status', class: 'pspx-muted' });
  private readonly _head = el('tr');
  private readonly _body = el('tbody');
  private readonly _more = el('div');
  private readonly _observer: ResizeObserver;
  private readonly _open = new Set<string>();
  private readonly _folds = new Folds();
  private _rows: readonly ProgramRow[] = [];
  private _drawn = new Map<string, { row: ProgramRow; line: HTMLElement }>();
  private _sortedBy = '';
  private _isDescending = true;
  private _shown = PAGE;
  private _isNarrow = false;
  private _isEnabled = true;
  private _wanted = '';
}

function noKernel(): string {
  return trans.__('The kernel is not responding.');
}

function took(row: ProgramRow): string {
  const stages = [duration(row.trace), duration(row.lower), duration(row.compile)] as const;
  return row.found === 'xla'
    ? trans.__('trace %1, lower %2, compile %3', ...stages)
    : trans.__('trace %1, lower %2, compile %3 (XLA took %4)', ...stages, duration(row.byXla));
}
