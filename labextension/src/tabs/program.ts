/**
 * *Program*: the programs of the session, and the one that is chosen in its four forms.
 *
 * While it *follows*, it shows what was compiled last, once the kernel is idle: making the document
 * of a program is work, and must not be done while a cell waits.
 */

import type { ProgramRow } from '../contract';
import { layout } from '../layout';
import type { KernelModel } from '../model';
import { duration, el, programView, replace, said } from '../shared';
import { Rows } from './rows';
import { button, Drawn, empty, forgottenNote, type Page, type Tab } from './tab';

/** How long the kernel must have been quiet before the newest program is asked for, in ms. */
const QUIET = 200;

/** What is looked at of one session of a kernel. */
type Choice = { session: string | null; chosen: string | null; follow: boolean };

export class ProgramTab implements Tab {
  readonly name = 'program';
  readonly label = 'Program';
  readonly topics = ['programs'] as const;
  readonly node: HTMLElement;

  constructor(page: Page) {
    this._follow = el('input', {
      type: 'checkbox',
      checked: true,
      onchange: () => {
        this._choice.follow = this._follow.checked;
        this._draw();
      }
    }) as HTMLInputElement;
    this._filter = el('input', {
      type: 'search',
      class: 'pspx-field',
      placeholder: 'filter',
      'aria-label': 'Filter the programs by name or type',
      oninput: () => this._draw()
    }) as HTMLInputElement;
    this._picker = el(
      'details',
      { class: 'pspx-picker', open: true },
      el('summary', null, 'Programs ', this._count),
      el(
        'div',
        { class: 'pspx-row' },
        this._filter,
        el(
          'label',
          { title: 'Show what was compiled last, whenever the kernel is idle' },
          this._follow,
          ' Follow'
        )
      ),
      el('div', { class: 'pspx-list' }, this._list, this._more),
      this._note
    ) as HTMLDetailsElement;
    this._document = new ProgramDocument(page);
    this.node = el('div', { class: 'pspx-fill' }, this._picker, this._document.node);
    this._rows = new Rows(this._list, this._more, row => this._item(row));
  }

  show(model: KernelModel): void {
    if (this._drawn.isOther(model)) {
      this._model = model;
      this._choice = this._choiceOf(model);
      this._follow.checked = this._choice.follow;
      this._asked = null;
      this._rows.forget();
      this._document.clear();
      if (this._choice.chosen !== null) {
        this._set(this._choice.chosen);
      }
    }
    this._draw();
  }

  /** Show the program with this id, and follow no longer. */
  choose(model: KernelModel, id: string): void {
    this.show(model);
    this._follow.checked = this._choice.follow = false;
    this._set(id);
  }

  dispose(): void {
    window.clearTimeout(this._timer);
    this._document.dispose();
  }

  private _draw(): void {
    const model = this._model;
    if (!model) {
      return;
    }
    const rows = model.tables.programs.inOrder();
    const wanted = this._filter.value.trim().toLowerCase();
    const found = rows.filter(row =>
      `${row.name}\n${row.signature}`.toLowerCase().includes(wanted)
    );
    this._rows.update(found.reverse());
    replace(this._count, `(${rows.length})`);
    replace(
      this._note,
      rows.length
        ? forgottenNote(model.tables.programs.forgotten)
        : empty(
            model.tables.programs,
            'Nothing has been compiled yet. Run a cell with a jitted function.'
          )
    );
    if (this._follow.checked) {
      const newest = rows.findLast(row => row.canShow);
      if (newest && newest.id !== this._choice.chosen) {
        window.clearTimeout(this._timer);
        this._timer = window.setTimeout(() => {
          if (this._model === model && this._follow.checked && model.kernel.status === 'idle') {
            this._set(newest.id);
          }
        }, QUIET);
      }
    }
  }

  private _item(row: ProgramRow): HTMLElement {
    return el(
      'button',
      {
        class: 'pspx-item',
        type: 'button',
        'data-id': row.id,
        'aria-pressed': String(row.id === this._choice.chosen),
        disabled: !row.canShow,
        title: row.canShow
          ? null
          : 'This program is no longer held by anything, so it cannot be shown.',
        onclick: () => this.choose(this._model!, row.id)
      },
      el('span', { class: 'pspx-code pspx-ellipsis' }, said(row.name, 60)),
      el('span', { class: 'pspx-muted pspx-ellipsis' }, said(row.signature, 80)),
      el(
        'span',
        { class: 'pspx-number pspx-muted' },
        row.equations === null ? duration(row.compile) : `${row.equations} eqn`
      )
    );
  }

  private _set(id: string): void {
    const model = this._model!;
    const row = model.tables.programs.get(id);
    this._choice.chosen = id;
    for (const item of this._list.children) {
      item.setAttribute('aria-pressed', String((item as HTMLElement).dataset.id === id));
    }
    if (row && this._asked !== row.id) {
      this._asked = row.id;
      void this._document.show(model, row.id);
    }
  }

  /** What was chosen before in this session of the kernel; what is followed is looked for again. */
  private _choiceOf(model: KernelModel): Choice {
    const known = this._choices.get(model);
    const choice: Choice =
      known?.session === model.session && !known.follow
        ? known
        : { session: model.session, chosen: null, follow: true };
    this._choices.set(model, choice);
    return choice;
  }

  private _model: KernelModel | null = null;
  private _drawn = new Drawn();
  private _choice: Choice = { session: null, chosen: null, follow: true };
  private _choices = new WeakMap<KernelModel, Choice>();
  private _asked: string | null = null;
  private _timer = 0;
  private _follow: HTMLInputElement;
  private _filter: HTMLInputElement;
  private _picker: HTMLDetailsElement;
  private _count = el('span', { class: 'pspx-muted' });
  private _list = el('div', { role: 'group', 'aria-label': 'Programs, the newest first' });
  private _more = el('div');
  private _note = el('div');
  private _rows: Rows<ProgramRow>;
  private _document: ProgramDocument;
}

/** One program in its four forms, and what it is compared with. In the sidebar or in a tab. */
export class ProgramDocument {
  readonly node: HTMLElement;

  constructor(private _page: Page) {
    this._compare = el('input', {
      type: 'checkbox',
      onchange: () => this._again()
    }) as HTMLInputElement;
    this.node = el('div', { class: 'pspx-fill' }, this._bar, this._status, this._host);
    this._host.hidden = true;
    this._view = programView(this._host, { layout, reveal: place => _page.reveal(place) });
  }

  clear(): void {
    this._id = null;
    this._turn += 1;
    this._host.hidden = true;
    replace(this._bar);
    replace(this._status);
  }

  async show(model: KernelModel, id: string): Promise<void> {
    this._model = model;
    this._session = model.session;
    this._id = id;
    const turn = (this._turn += 1);
    const row = model.tables.programs.get(id);
    const earlier = row && previousOf(row, model.tables.programs.inOrder());
    replace(this._status, 'The kernel writes the program down…');
    let isDrawn = false;
    try {
      const [program, previous] = await Promise.all([
        model.program(id),
        earlier && this._compare.checked ? model.program(earlier.id) : null
      ]);
      if (this._turn !== turn) {
        return; // Another one was chosen meanwhile.
      }
      replace(
        this._bar,
        earlier &&
          el(
            'label',
            { title: `Mark what changed since the program of ${earlier.signature}` },
            this._compare,
            ' Compare with the one before'
          ),
        this._page.openProgram &&
          button('Open in a tab', () => this._page.openProgram!(model, id, program.name))
      );
      replace(this._status);
      this._host.hidden = false;
      this._view.update(program, { previous });
      isDrawn = true;
      // What is there may be looked at while the kernel writes the rest.
      const [compiled, before] = await Promise.all([
        model.compiled(id),
        earlier && previous ? model.compiled(earlier.id) : null
      ]);
      if (this._turn === turn) {
        this._view.complete(compiled, before);
      }
    } catch (error) {
      if (this._turn === turn) {
        if (!isDrawn) {
          this._host.hidden = true;
          replace(this._bar);
        }
        replace(
          this._status,
          el('span', { class: 'pspx-error' }, said((error as Error).message, 1000))
        );
      }
    }
  }

  dispose(): void {
    this._view.dispose();
  }

  /** Show the same one, compared or not. */
  private _again(): void {
    const model = this._model;
    if (!model || this._id === null) {
      return;
    }
    if (model.session === this._session) {
      void this.show(model, this._id);
    } else {
      this._compare.checked = !this._compare.checked;
      replace(this._status, 'This program is of a session of the kernel that is over.');
    }
  }

  private _model: KernelModel | null = null;
  private _session: string | null = null;
  private _id: string | null = null;
  private _turn = 0;
  private _compare: HTMLInputElement;
  private _bar = el('div', { class: 'pspx-row' });
  private _status = el('div', { role: 'status', class: 'pspx-muted' });
  private _host = el('div', { class: 'pspx-program-host' });
  private _view: ReturnType<typeof programView>;
}

/** The last program of the same function before this one, if it can be shown. */
export function previousOf(row: ProgramRow, rows: readonly ProgramRow[]): ProgramRow | undefined {
  return rows.findLast(
    other => other.name === row.name && other.order < row.order && other.canShow
  );
}
