/**
 * *Program*: the programs of the session, and the chosen one in its four forms.
 *
 * While it *follows*, it shows what the last cell used, once the kernel is idle: making the document
 * of a program is work that must not delay a cell.
 */

import type { ProgramRow } from '../contract';
import type { ISession } from '../model/session';
import { layOut } from '../panel/layout';
import { button, el, messageOf, replace, said } from '../views/dom';
import { type Entry, fits, type Fold, Folds } from '../views/folds';
import { type ProgramView, programView } from '../views/program/view';
import { titleOf } from '../views/titles';
import { trans } from '../views/trans';
import { count, duration } from '../views/units';
import { Rows } from './rows';
import { empty, forgottenNote, type ITab, type ITabPage } from './tab';

/** How long the kernel must be quiet before the newest program is asked for, in ms. */
const QUIET = 200;

/** What is shown of one session. */
type Choice = { chosen: string | null; follow: boolean };

export class ProgramTab implements ITab {
  readonly name = 'program';
  readonly label = trans.__('Program');
  readonly topics = ['programs'] as const;
  readonly node: HTMLElement;

  constructor(page: ITabPage) {
    this._follow = el('input', {
      type: 'checkbox',
      checked: true,
      onchange: () => {
        this._choice.follow = this._follow.checked;
        this._draw();
      }
    });
    this._filter = el('input', {
      type: 'search',
      class: 'pspx-field',
      placeholder: trans.__('filter'),
      'aria-label': trans.__('Filter the programs by name or type'),
      oninput: () => this._draw()
    });
    this._document = new ProgramDocument(page);
    this.node = el(
      'div',
      { class: 'pspx-fill' },
      el(
        'details',
        { class: 'pspx-picker', open: true },
        el('summary', null, `${trans.__('Programs')} `, this._count),
        el(
          'div',
          { class: 'pspx-row' },
          this._filter,
          el(
            'label',
            { title: trans.__('Show what the last cell used, once the kernel is idle') },
            this._follow,
            ` ${trans.__('Follow')}`
          )
        ),
        el('div', { class: 'pspx-list' }, this._list, this._more),
        this._note
      ),
      this._document.node
    );
    this._rows = new Rows(this._list, this._more, entry =>
      entry.fold ? this._head(entry.fold) : this._item(entry.row, entry.isInside)
    );
  }

  show(session: ISession): void {
    if (session !== this._session) {
      this._session = session;
      this._choice = this._choiceOf(session);
      this._follow.checked = this._choice.follow;
      this._asked = null;
      this._folds.forget();
      this._rows.forget();
      this._document.clear();
      if (this._choice.chosen !== null) {
        this._set(session, this._choice.chosen);
      }
    }
    this._draw();
  }

  /** Show the program with this id, and stop following. */
  choose(session: ISession, id: string): void {
    this.show(session);
    this._follow.checked = this._choice.follow = false;
    this._set(session, id);
  }

  dispose(): void {
    window.clearTimeout(this._timer);
    this._document.dispose();
  }

  private _draw(): void {
    const session = this._session;
    if (!session) {
      return;
    }
    const { programs } = session.tables;
    const rows = programs.inOrder();
    const wanted = this._filter.value.trim().toLowerCase();
    const found = rows.filter(row => fits(row, wanted)).reverse();
    this._rows.update(wanted ? this._folds.flat(found) : this._folds.entries(found));
    replace(this._count, `(${count(rows.length)})`);
    replace(
      this._note,
      rows.length
        ? forgottenNote(programs.forgotten)
        : empty(
            programs,
            trans.__('Nothing has been compiled yet. Run a cell that calls a jitted function.')
          )
    );
    const latest = this._follow.checked ? lastUsed(rows) : undefined;
    if (latest && latest.id !== this._choice.chosen) {
      this._showSoon(session, latest.id);
    }
  }

  /** The head of what functions of libraries compiled for one line. */
  private _head({ id, at, rows, isOpen }: Fold): HTMLElement {
    const n = rows.length;
    return button(
      'pspx-item',
      () => {
        this._folds.toggle(id);
        this._draw();
      },
      el('span', { class: 'pspx-muted' }, isOpen ? '▾' : '▸'),
      { 'aria-expanded': String(isOpen) },
      el(
        'span',
        { class: 'pspx-muted pspx-ellipsis' },
        trans._n('%2 library call', '%2 library calls', n, count(n))
      ),
      at && el('span', { class: 'pspx-number pspx-muted' }, said(at.text, 60))
    );
  }

  /** Show a program once the kernel has been idle for a moment, unless another one is chosen. */
  private _showSoon(session: ISession, id: string): void {
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      if (this._session !== session || !this._follow.checked || this.node.hidden) {
        return;
      }
      if (session.isIdle) {
        this._set(session, id);
      } else {
        this._showSoon(session, id);
      }
    }, QUIET);
  }

  private _item(row: ProgramRow, isInside: boolean): HTMLElement {
    return button(
      isInside ? 'pspx-item pspx-inside' : 'pspx-item',
      () => this._session && this.choose(this._session, row.id),
      el('span', { class: 'pspx-code pspx-ellipsis' }, said(row.title, 60)),
      {
        'data-id': row.id,
        'aria-pressed': String(row.id === this._choice.chosen),
        disabled: !row.canShow,
        title: row.canShow
          ? null
          : trans.__('This program is gone with its function and cannot be shown.')
      },
      el(
        'span',
        { class: 'pspx-muted pspx-ellipsis' },
        row.cell && `${row.cell} · `,
        said(row.signature, 80)
      ),
      el(
        'span',
        { class: 'pspx-number pspx-muted' },
        row.equations === null
          ? duration(row.compile)
          : trans._n('%2 eqn', '%2 eqns', row.equations, count(row.equations))
      )
    );
  }

  private _set(session: ISession, id: string): void {
    this._choice.chosen = id;
    for (const item of this._list.querySelectorAll<HTMLElement>('.pspx-item')) {
      item.setAttribute('aria-pressed', String(item.dataset.id === id));
    }
    if (session.tables.programs.get(id) && this._asked !== id) {
      this._asked = id;
      void this._document.show(session, id);
    }
  }

  /** The earlier choice in this session; what is followed is looked for again. */
  private _choiceOf(session: ISession): Choice {
    const known = this._choices.get(session);
    const choice = known && !known.follow ? known : { chosen: null, follow: true };
    this._choices.set(session, choice);
    return choice;
  }

  private readonly _follow: HTMLInputElement;
  private readonly _filter: HTMLInputElement;
  private readonly _count = el('span', { class: 'pspx-muted' });
  private readonly _list = el('div', {
    role: 'group',
    'aria-label': trans.__('Programs, the newest first, with those of libraries behind them')
  });
  private readonly _more = el('div');
  private readonly _note = el('div');
  private readonly _folds = new Folds();
  private readonly _rows: Rows<Entry>;
  private readonly _document: ProgramDocument;
  private readonly _choices = new WeakMap<ISession, Choice>();
  private _session: ISession | null = null;
  private _choice: Choice = { chosen: null, follow: true };
  private _asked: string | null = null;
  private _timer = 0;
}

/** One program in its four forms, and its comparison with an earlier one. */
export class ProgramDocument {
  readonly node: HTMLElement;

  constructor(private readonly _page: ITabPage) {
    this._compare = el('input', { type: 'checkbox', onchange: () => this._again() });
    this.node = el('div', { class: 'pspx-fill' }, this._bar, this._status, this._host);
    this._host.hidden = true;
    this._view = programView(this._host, { layOut, reveal: place => _page.reveal(place) });
  }

  clear(): void {
    this._shown = null;
    this._turn += 1;
    this._host.hidden = true;
    replace(this._bar);
    replace(this._status);
  }

  async show(session: ISession, id: string): Promise<void> {
    this._shown = { session, id };
    const turn = (this._turn += 1);
    const isCurrent = () => this._turn === turn;
    const { programs } = session.tables;
    const row = programs.get(id);
    const earlier = row && previousOf(row, programs.inOrder());
    replace(this._status, trans.__('Loading...'));
    let isDrawn = false;
    try {
      const [found, previous] = await Promise.all([
        session.program(id),
        earlier && this._compare.checked ? session.program(earlier.id) : null
      ]);
      if (!isCurrent()) {
        return;
      }
      // As in the list: the program of a cell with `%%jit` has no name of its own.
      const program = row ? { ...found, name: titleOf(row) } : found;
      this._offer(session, id, program.name, earlier);
      replace(this._status);
      this._host.hidden = false;
      this._view.update(program, previous);
      isDrawn = true;
      // The forms that are there can be read while the kernel writes the others.
      const [compiled, before] = await Promise.all([
        session.compiled(id),
        earlier && previous ? session.compiled(earlier.id) : null
      ]);
      if (isCurrent()) {
        this._view.complete(compiled, before);
      }
    } catch (error) {
      if (isCurrent()) {
        if (!isDrawn) {
          this._host.hidden = true;
          replace(this._bar);
        }
        const text = said(messageOf(error), 1000);
        replace(this._status, el('span', { class: 'pspx-error' }, text));
      }
    }
  }

  dispose(): void {
    this._turn += 1;
    this._view.dispose();
  }

  private _offer(
    session: ISession,
    id: string,
    name: string,
    earlier: ProgramRow | undefined
  ): void {
    const { _page: page } = this;
    replace(
      this._bar,
      earlier &&
        el(
          'label',
          { title: trans.__('Mark the changes since the program for %1', earlier.signature) },
          this._compare,
          ` ${trans.__('Compare with the previous one')}`
        ),
      page.openProgram &&
        button(
          'pspx-button',
          () => page.openProgram?.(session, id, name),
          trans.__('Open in a tab')
        )
    );
  }

  /** Show the same program, compared or not. */
  private _again(): void {
    if (!this._shown) {
      return;
    }
    const { session, id } = this._shown;
    if (session.isOver) {
      this._compare.checked = !this._compare.checked;
      replace(this._status, trans.__('This program belongs to an earlier session of the kernel.'));
    } else {
      void this.show(session, id);
    }
  }

  private readonly _compare: HTMLInputElement;
  private readonly _bar = el('div', { class: 'pspx-row' });
  private readonly _status = el('div', { role: 'status', class: 'pspx-muted' });
  private readonly _host = el('div', { class: 'pspx-program-host' });
  private readonly _view: ProgramView;
  private _shown: { session: ISession; id: string } | null = null;
  private _turn = 0;
}

/** The user's own program that was used last, and the newest of several; without one, a library's. */
export function lastUsed(rows: readonly ProgramRow[]): ProgramRow | undefined {
  const later = (a: ProgramRow, b: ProgramRow) =>
    Number(b.library) - Number(a.library) || a.used - b.used || a.order - b.order;
  return rows
    .filter(row => row.canShow)
    .reduce<ProgramRow | undefined>(
      (last, row) => (last && later(last, row) > 0 ? last : row),
      undefined
    );
}

/** The last program of the same function before this one, if it can be shown. */
export function previousOf(row: ProgramRow, rows: readonly ProgramRow[]): ProgramRow | undefined {
  return rows.findLast(
    other =>
      other.name === row.name &&
      other.title === row.title &&
      other.order < row.order &&
      other.canShow
  );
}
