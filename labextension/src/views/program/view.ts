/**
 * A program in its four forms side by side: the user's lines, the jaxpr, StableHLO, and the HLO that
 * XLA made of it. What belongs to the line under the pointer is highlighted in all of them; a click
 * pins it and brings it into sight everywhere.
 */

import type { Compiled, Place } from '../../contract';
import { button, cut, el, replace, said, stylesheet, visible } from '../dom';
import type { LayOut } from '../layout';
import { LOOK } from '../look';
import { trans } from '../trans';
import { count, size } from '../units';
import { type Equation, equationsOf, ProgramGraph } from './graph';
import { type Match, Pane } from './pane';
import { compared, type Document, type Form, formOf } from './rows';
import { PROGRAM_STYLE } from './style';

/** Below this width, in pixels, one form is shown at a time. */
const NARROW = 620;

export type ProgramActions = {
  /** Without it there is no graph. */
  layOut?: LayOut;
  reveal?: (place: Place) => void;
};

export type ProgramView = {
  update(program: Document, previous?: Document | null): void;
  /** Add the forms that `update` was not given yet. */
  complete(compiled: Compiled, previous?: Compiled | null): void;
  dispose(): void;
};

/** The view of one program; its height is that of the host. */
export function programView(host: HTMLElement, actions: ProgramActions = {}): ProgramView {
  const view = new View(actions);
  host.append(view.root);
  return view;
}

class View implements ProgramView {
  readonly root: HTMLElement;

  constructor(private readonly _actions: ProgramActions) {
    const forms: [Form, string][] = [
      ['source', trans.__('Source')],
      ['jaxpr', trans.__('Jaxpr')],
      ['stablehlo', trans.__('StableHLO')],
      ['hlo', trans.__('Optimized HLO')]
    ];
    this._panes = forms.map(([form, title]) => this._pane(form, title));
    this._frames = this._panes.map(pane => this._frame(pane));
    this._graph = _actions.layOut
      ? new ProgramGraph(_actions.layOut, {
          hover: lit => this._highlight(lit),
          choose: equation => this._pin(new Set([equation]), null)
        })
      : null;
    this._search = el('input', {
      class: 'pspx-field',
      type: 'search',
      placeholder: trans.__('Search'),
      'aria-label': trans.__('Search in all visible forms'),
      oninput: () => this._find(),
      onkeydown: event => this._searchKey(event)
    });
    this._compare = button('pspx-button', () => this._toggleComparing(), trans.__('Difference'));
    const step = (text: string, hint: string, by: number) =>
      button('pspx-button', () => this._go(by), text, { 'aria-label': hint, title: hint });
    this.root = el(
      'div',
      { class: 'pspx-view pspx-program', role: 'group', 'aria-label': trans.__('Program') },
      stylesheet(LOOK + PROGRAM_STYLE),
      el(
        'div',
        { class: 'pspx-row pspx-program-bar' },
        this._title,
        this._switches,
        el(
          'div',
          { class: 'pspx-row' },
          this._search,
          step('↑', trans.__('previous match'), -1),
          step('↓', trans.__('next match'), 1),
          this._status,
          this._compare
        )
      ),
      el('div', { class: 'pspx-program-stage' }, this._frames, this._graph?.element),
      this._details,
      this._notes
    );
    this._observer = new ResizeObserver(() => this._resize());
    this._observer.observe(this.root);
    this._arrange();
  }

  update(program: Document, previous: Document | null = null): void {
    this._program = program;
    this._previous = previous;
    this._equations = equationsOf(program.equations);
    this._isComparing = this._isComparing && previous !== null;
    this._pinned = new Set();
    replace(
      this._title,
      said(program.name, 60),
      ' ',
      el('span', { class: 'pspx-muted' }, said(program.signature, 80))
    );
    replace(
      this._notes,
      program.notes.map(note => el('div', null, said(note, 400)))
    );
    this._fill();
    this._arrange();
    this._describe();
  }

  complete(compiled: Compiled, previous: Compiled | null = null): void {
    this._program = this._program && { ...this._program, ...compiled };
    this._previous = this._previous && { ...this._previous, ...previous };
    for (const pane of this._panes) {
      if (pane.form === 'stablehlo' || pane.form === 'hlo') {
        this._fillPane(pane);
        pane.scrollToLinks(this._pinned);
      }
    }
    if (this._search.value) {
      this._find();
    } else if (this._isComparing) {
      this._tellChanges();
    }
  }

  dispose(): void {
    this._observer.disconnect();
    this.root.remove();
  }

  // ---- Panes ---------------------------------------------------------------------------------

  private _pane(form: Form, title: string): Pane {
    const pane: Pane = new Pane(form, title, {
      hover: lit => this._highlight(lit),
      choose: links => this._pin(links, pane),
      search: () => this._search.focus(),
      escape: () => this._escape()
    });
    return pane;
  }

  private _frame(pane: Pane): HTMLElement {
    const tool = (text: string, hint: string, act: () => unknown) =>
      button('pspx-quiet pspx-muted', act, text, {
        title: hint,
        'aria-label': `${pane.title}: ${hint}`
      });
    return el(
      'div',
      { class: 'pspx-program-pane' },
      el(
        'div',
        { class: 'pspx-row pspx-program-top' },
        el('span', null, pane.title),
        tool(trans.__('fold'), trans.__('fold nested programs'), () => pane.foldAll(true)),
        tool(trans.__('unfold'), trans.__('unfold everything'), () => pane.foldAll(false)),
        tool(trans.__('copy'), trans.__('copy the whole text'), () => this._copy(pane))
      ),
      pane.box
    );
  }

  private _fill(): void {
    this._panes.forEach(pane => this._fillPane(pane));
    this._find();
    this._highlight(new Set());
  }

  private _fillPane(pane: Pane): void {
    if (this._program === null) {
      return;
    }
    const now = formOf(this._program, pane.form);
    const before = this._isComparing && this._previous && formOf(this._previous, pane.form);
    pane.setRows(before ? compared(pane.form, before, now) : now);
    if (pane.form === 'hlo') {
      pane.scrollToRow(
        Math.max(
          0,
          pane.rows.findIndex(row => row.text.startsWith('ENTRY '))
        )
      );
    }
  }

  // ---- Links ---------------------------------------------------------------------------------

  private _highlight(lit: ReadonlySet<number>): void {
    this._panes.forEach(pane => pane.highlight(lit, this._pinned));
    this._graph?.highlight(lit, this._pinned);
  }

  private _pin(links: ReadonlySet<number>, from: Pane | null): void {
    this._pinned = links;
    this._highlight(links);
    if (links.size) {
      this._panes.filter(pane => pane !== from).forEach(pane => pane.scrollToLinks(links));
      this._drawGraph();
    }
    this._describe();
  }

  private _escape(): void {
    if (this._search.value) {
      this._search.value = '';
      this._find();
    } else {
      this._pin(new Set(), null);
    }
  }

  /** Say below the panes what is pinned. */
  private _describe(): void {
    const pinned = [...this._pinned];
    const equations = pinned.flatMap(i => this._equations[i] ?? []);
    const [first] = equations;
    if (this._program === null || !first) {
      const hint = trans.__('Click a line, or press Enter on it, to pin what belongs to it.');
      replace(this._details, el('span', { class: 'pspx-muted' }, hint));
      return;
    }
    const outer = equations.filter(one => !this._pinned.has(one.parent));
    const flops = total(outer.map(one => one.flops));
    const bytes = total(outer.map(one => one.bytes));
    const place = placeOf(this._program, pinned[0] ?? -1, first.at);
    const { reveal } = this._actions;
    replace(
      this._details,
      el('span', { class: 'pspx-code' }, what(first, equations)),
      place && reveal
        ? button('pspx-quiet', () => reveal(place), said(first.at), {
            title: trans.__('Show this line')
          })
        : said(first.at),
      el(
        'span',
        { title: trans.__('Arithmetic operations in one run') },
        flops === null ? trans.__('FLOPs unknown') : trans.__('%1 FLOPs', count(flops))
      ),
      el(
        'span',
        { title: trans.__('Bytes read and written in one run without fusion') },
        bytes === null ? trans.__('bytes unknown') : size(bytes)
      ),
      flops !== null &&
        flops > 0 &&
        bytes !== null &&
        bytes > 0 &&
        el(
          'span',
          { class: 'pspx-muted' },
          trans.__('%1 FLOPs per byte', (flops / bytes).toPrecision(3))
        )
    );
  }

  // ---- Searching -----------------------------------------------------------------------------

  private _find(): void {
    const wanted = this._search.value;
    const isExact = wanted !== wanted.toLowerCase();
    this._found = [];
    this._at = -1;
    this._panes.forEach(pane => {
      const found = new Map<number, Match[]>();
      if (wanted && this._isOpen(pane.form)) {
        pane.rows.forEach((row, i) => {
          const matches = matchesIn(isExact ? row.text : row.text.toLowerCase(), wanted);
          if (matches.length) {
            found.set(i, matches);
            this._found.push({ pane, row: i });
          }
        });
      }
      pane.setMatches(found);
    });
    if (this._found.length) {
      this._go(1);
    } else {
      replace(this._status, wanted ? trans.__('no match') : '');
    }
  }

  private _go(step: number): void {
    const n = this._found.length;
    const at = (this._at + step + n) % n;
    const next = this._found[at];
    if (next) {
      this._at = at;
      next.pane.scrollToRow(next.row, { unfold: true });
      next.pane.moveTo(next.row);
      replace(this._status, trans.__('%1 of %2 lines', count(at + 1), count(n)));
    }
  }

  private _searchKey(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      event.preventDefault();
      this._go(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape' && this._search.value) {
      event.stopPropagation();
      this._escape();
    }
  }

  // ---- What is shown -------------------------------------------------------------------------

  private _isOpen(form: string): boolean {
    return this._isNarrow ? this._only === form : this._open.has(form);
  }

  private _toggle(form: string): void {
    if (this._isNarrow) {
      this._only = form;
    } else if (this._open.has(form) && this._open.size > 1) {
      this._open.delete(form);
    } else {
      this._open.add(form);
    }
    this._arrange();
    this._find();
    this._panes.forEach(pane => pane.scrollToLinks(this._pinned));
  }

  private _resize(): void {
    const width = this.root.clientWidth;
    const isNarrow = width > 0 && width < NARROW;
    if (isNarrow !== this._isNarrow) {
      this._isNarrow = isNarrow;
      this._arrange();
    }
    this._panes.forEach(pane => pane.draw());
  }

  private _arrange(): void {
    const focused = document.activeElement;
    const form =
      focused instanceof HTMLElement && this._switches.contains(focused)
        ? focused.dataset.form
        : undefined;
    const forms = this._panes.map(pane => [pane.form, pane.title] as const);
    const graph = this._graph ? ([['graph', trans.__('Graph')]] as const) : [];
    replace(
      this._switches,
      [...forms, ...graph].map(([name, title]) =>
        button('pspx-button pspx-program-switch', () => this._toggle(name), title, {
          'data-form': name,
          'aria-pressed': String(this._isOpen(name))
        })
      )
    );
    if (form) {
      this._switches.querySelector<HTMLElement>(`[data-form="${form}"]`)?.focus();
    }
    const previous = this._previous;
    this._compare.hidden = previous === null;
    this._compare.setAttribute('aria-pressed', String(this._isComparing));
    if (previous) {
      const text = `${cut(previous.name, 60)}(${cut(previous.signature, 200)})`;
      this._compare.title = trans.__('Changes since %1', visible(text));
    }
    this._panes.forEach((pane, i) =>
      this._frames[i]?.toggleAttribute('hidden', !this._isOpen(pane.form))
    );
    this._graph?.element.toggleAttribute('hidden', !this._isOpen('graph'));
    this._drawGraph();
  }

  /** Draw the graph if it is in sight, unless it is drawn already. */
  private _drawGraph(): void {
    if (this._graph && this._isOpen('graph')) {
      this._graph.show(this._equations, least(this._pinned));
    }
  }

  private _toggleComparing(): void {
    this._isComparing = !this._isComparing;
    this._fill();
    this._arrange();
    if (!this._isComparing) {
      replace(this._status);
      return;
    }
    this._tellChanges();
    for (const pane of this._panes) {
      const first = pane.rows.findIndex(row => row.kind === 'new' || row.kind === 'gone');
      if (first >= 0) {
        pane.scrollToRow(first);
      }
    }
  }

  private _tellChanges(): void {
    const changed = this._panes.map(
      pane => pane.rows.filter(row => row.kind === 'new' || row.kind === 'gone').length
    );
    const texts = this._panes.map((pane, i) => `${pane.title} ${count(changed[i])}`);
    replace(
      this._status,
      changed.some(Boolean)
        ? trans.__('Changed lines: %1', texts.join(', '))
        : trans.__('No line has changed.')
    );
  }

  private async _copy(pane: Pane): Promise<void> {
    try {
      await navigator.clipboard.writeText(pane.text());
      replace(this._status, trans.__('%1 copied', pane.title));
    } catch {
      replace(this._status, trans.__('This page cannot copy. Select the text.'));
    }
  }

  private readonly _panes: readonly Pane[];
  private readonly _frames: readonly HTMLElement[];
  private readonly _graph: ProgramGraph | null;
  private readonly _title = el('div', { class: 'pspx-program-title' });
  private readonly _switches = el('div', {
    class: 'pspx-row',
    role: 'group',
    'aria-label': trans.__('Forms of the program')
  });
  private readonly _search: HTMLInputElement;
  private readonly _status = el('span', { class: 'pspx-muted', role: 'status' });
  private readonly _compare: HTMLButtonElement;
  private readonly _details = el('div', {
    class: 'pspx-program-details',
    role: 'group',
    'aria-label': trans.__('Pinned equation')
  });
  private readonly _notes = el('div', { class: 'pspx-program-notes pspx-muted' });
  private readonly _observer: ResizeObserver;
  private readonly _open = new Set<string>(['source', 'jaxpr', 'hlo']);
  private _program: Document | null = null;
  private _previous: Document | null = null;
  private _equations: readonly Equation[] = [];
  private _isComparing = false;
  private _isNarrow = false;
  private _only = 'jaxpr';
  private _pinned: ReadonlySet<number> = new Set();
  private _found: { pane: Pane; row: number }[] = [];
  private _at = -1;
}

/** The pinned equations, in words. */
function what(first: Equation, equations: readonly Equation[]): (Node | string)[] {
  if (equations.length === 1) {
    const outputs = first.outputs.join(' ');
    return [
      said(outputs, 120),
      outputs ? ' = ' : '',
      el('strong', null, said(first.primitive, 60))
    ];
  }
  const names = [...new Set(equations.map(one => one.primitive))].join(', ');
  const n = equations.length;
  return [`${trans._n('%2 equation', '%2 equations', n, count(n))}: `, said(names, 120)];
}

/** The line of the user's code, called `text`, that an equation comes from. */
function placeOf(program: Document, equation: number, text: string): Place | null {
  for (const { name, cell, first, lines } of program.sources) {
    const i = lines.links.findIndex(link =>
      Array.isArray(link) ? link.includes(equation) : link === equation
    );
    if (i >= 0) {
      return { text, cell, file: cell || name.startsWith('Cell ') ? '' : name, line: first + i };
    }
  }
  return null;
}

function matchesIn(text: string, wanted: string): Match[] {
  const found: Match[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    found.push({ from: at, to: at + wanted.length });
  }
  return found;
}

/** The least of some numbers, or -1. */
function least(numbers: ReadonlySet<number>): number {
  let found = -1;
  for (const n of numbers) {
    found = found < 0 ? n : Math.min(found, n);
  }
  return found;
}

function total(parts: readonly (number | null)[]): number | null {
  return parts.reduce<number | null>(
    (sum, part) => (sum === null || part === null ? null : sum + part),
    0
  );
}
