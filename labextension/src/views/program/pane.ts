/**
 * A listing of any length in a box that scrolls: only the lines in sight are in the page.
 *
 * It is a tree for the keyboard and for screen readers, because lines fold: arrows go up and down,
 * right and left unfold and fold. What a line means is the view's business: the pane says which line
 * the pointer is on, which is current, and which was chosen.
 */

import { cut, el, replace } from '../dom';
import { trans } from '../trans';
import { count } from '../units';
import type { Form, Row } from './rows';

/** The height of a line, in pixels. All are the same, so that the place of any line is known. */
const LINE = 19;
/** Lines that are drawn above and below those in sight. */
const SPARE = 12;
/** Characters of a line that are drawn. */
const LONGEST = 1000;

export type PaneEvents = {
  /** The pointer, or the keyboard, is on a line, whose equations these are. */
  hover(links: Set<number>): void;
  choose(links: Set<number>): void;
  search(): void;
  escape(): void;
};

/** Characters of a line. */
export type Match = { from: number; to: number };

/** Types, strings and words, in this order. */
const TOKENS: Record<Form, RegExp> = {
  source:
    /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|for|in|if|else|while|lambda|with|import|from|as|not|and|or|class|yield|await|async|None|True|False)\b/g,
  jaxpr: /(:[a-z]\w*\[[^\]]*\])|(?!)()|(?<== |^\s*)([a-z][\w-]*)(?=[[ ])/g,
  stablehlo:
    /((?:tensor|tuple)<[^>]*>)|("[^"]*")|\b((?:stablehlo|chlo|func|sdy)\.\w+|call|return|module)\b/g,
  hlo: /([a-z]\w*\[[\d,]*\](?:\{[^}]*\})?)|("(?:[^"\\]|\\.)*")|(?<= )([a-z][\w-]*)(?=\()/g
};
const CLASSES = ['pspx-program-type', 'pspx-program-string', 'pspx-program-word'];

const NO_LINKS: readonly number[] = [];

let panes = 0;

/** One listing. */
export class Pane {
  readonly box: HTMLElement;
  rows: readonly Row[] = [];

  constructor(
    readonly form: Form,
    readonly title: string,
    private readonly _events: PaneEvents
  ) {
    this.box = el(
      'div',
      {
        class: 'pspx-program-box pspx-code',
        role: 'tree',
        tabindex: 0,
        'aria-label': title,
        onscroll: () => this.draw(),
        onkeydown: event => this._key(event),
        onpointermove: event => _events.hover(this._linksAt(this._numberAt(event))),
        onpointerleave: () => _events.hover(new Set()),
        onclick: event => this._click(event)
      },
      this._space
    );
  }

  setRows(rows: readonly Row[]): void {
    this.rows = rows;
    this._folded.clear();
    this._inside.clear();
    this._current = Math.min(this._current, Math.max(0, rows.length - 1));
    this._refold();
  }

  /** Mark these characters of these rows. */
  setMatches(matches: ReadonlyMap<number, readonly Match[]>): void {
    this._matches = matches;
    this._redraw();
  }

  highlight(lit: ReadonlySet<number>, pinned: ReadonlySet<number>): void {
    this._lit = lit;
    this._pinned = pinned;
    this._mark();
  }

  /** Bring the first row that belongs to the equations into sight. */
  scrollToLinks(links: ReadonlySet<number>): void {
    const linked = this.rows.findIndex(row => row.links.some(link => links.has(link)));
    if (linked >= 0) {
      this.scrollToRow(linked);
    }
  }

  scrollToRow(number: number, { unfold = false } = {}): void {
    if (unfold) {
      for (const head of [...this._folded]) {
        if (head < number && number <= head + (this.rows[head]?.fold ?? 0)) {
          this._fold(head, false);
        }
      }
    }
    const at = this._placeOf(number) * LINE;
    const height = this.box.clientHeight;
    if (at < this.box.scrollTop || at + LINE > this.box.scrollTop + height) {
      this.box.scrollTop = Math.max(0, at - height / 3);
    }
    this.draw();
  }

  /** Make a row the current one, and choose it if `choose`. */
  moveTo(number: number, choose = false): void {
    this._current = this._shown[this._placeOf(number)] ?? 0;
    this.scrollToRow(this._current);
    this._mark();
    if (this.rows[this._current]) {
      const links = this._linksAt(this._current);
      this._events.hover(links);
      if (choose) {
        this._events.choose(links);
      }
    }
  }

  /** Fold all that is inside of something, or unfold everything. */
  foldAll(folded: boolean): void {
    this._folded.clear();
    this._inside.clear();
    this.rows.forEach((row, i) => {
      if (folded && row.fold > 1 && row.level > 0) {
        this._hide(i, row);
      }
    });
    this._refold();
  }

  text(): string {
    return this.rows
      .filter(row => row.kind !== 'gone')
      .map(row => row.text)
      .join('\n');
  }

  // ---- Folding -------------------------------------------------------------------------------

  /** Work out again which rows are shown. */
  private _refold(): void {
    this._shown = [];
    for (let i = 0; i < this.rows.length; i += 1) {
      this._shown.push(i);
      if (this._folded.has(i)) {
        i += this.rows[i]?.fold ?? 0;
      }
    }
    this._space.style.height = `${this._shown.length * LINE}px`;
    this._redraw();
  }

  private _fold(number: number, folded: boolean): void {
    const row = this.rows[number];
    if (!row?.fold || this._folded.has(number) === folded) {
      return;
    }
    if (folded) {
      this._hide(number, row);
    } else {
      this._folded.delete(number);
      this._inside.delete(number);
    }
    this._refold();
  }

  private _hide(number: number, row: Row): void {
    this._folded.add(number);
    const rows = this.rows.slice(number, number + row.fold + 1);
    this._inside.set(number, [...new Set(rows.flatMap(one => one.links))]);
  }

  /** What a row belongs to; a folded row stands for what is inside, too. */
  private _linksOf(number: number): readonly number[] {
    return this._inside.get(number) ?? this.rows[number]?.links ?? NO_LINKS;
  }

  private _linksAt(number: number | null): Set<number> {
    return new Set(number === null ? [] : this._linksOf(number));
  }

  /** Where a row is among those that are shown; a row that is folded away is where its head is. */
  private _placeOf(number: number): number {
    let low = 0;
    let high = this._shown.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this._shown[middle] ?? 0) <= number) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  // ---- Events --------------------------------------------------------------------------------

  private _numberAt(event: Event): number | null {
    const line =
      event.target instanceof Element
        ? event.target.closest<HTMLElement>('.pspx-program-line')
        : null;
    const number = Number(line?.dataset.row ?? -1);
    return this.rows[number] ? number : null;
  }

  private _click(event: MouseEvent): void {
    const number = this._numberAt(event);
    if (number === null) {
      return;
    }
    if (event.target instanceof Element && event.target.closest('.pspx-program-fold')) {
      this._fold(number, !this._folded.has(number));
    } else if (!document.getSelection()?.toString()) {
      this.moveTo(number, true);
    }
  }

  private _key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const place = this._placeOf(this._current);
    const page = Math.max(1, Math.floor(this.box.clientHeight / LINE) - 1);
    const go = (to: number) =>
      this.moveTo(this._shown[Math.min(Math.max(to, 0), this._shown.length - 1)] ?? 0);
    const acts: Record<string, () => void> = {
      ArrowDown: () => go(place + 1),
      ArrowUp: () => go(place - 1),
      PageDown: () => go(place + page),
      PageUp: () => go(place - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.rows.length - 1),
      ArrowRight: () => this._fold(this._current, false),
      ArrowLeft: () => this._foldOrUp(),
      Enter: () => this.moveTo(this._current, true),
      ' ': () => this.moveTo(this._current, true),
      '/': () => this._events.search(),
      Escape: () => this._events.escape()
    };
    const act = acts[event.key];
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      if (this.rows.length) {
        act();
      }
    }
  }

  /** Fold the current row, or go to the row that holds it. */
  private _foldOrUp(): void {
    const row = this.rows[this._current];
    if (row?.fold && !this._folded.has(this._current)) {
      this._fold(this._current, true);
      return;
    }
    for (let i = this._current - 1; i >= 0; i -= 1) {
      if (i + (this.rows[i]?.fold ?? 0) >= this._current) {
        this.moveTo(i);
        return;
      }
    }
  }

  // ---- Drawing -------------------------------------------------------------------------------

  private _redraw(): void {
    this._from = this._to = -1;
    this.draw();
  }

  /** Draw the lines in sight, if they are not in the page already. */
  draw(): void {
    const first = Math.floor(this.box.scrollTop / LINE);
    const many = Math.ceil((this.box.clientHeight || 400) / LINE);
    const from = Math.max(0, first - SPARE);
    const to = Math.min(this._shown.length, first + many + SPARE);
    const last = Math.min(this._shown.length, first + many);
    if (this._from >= 0 && first >= this._from && last <= this._to) {
      return;
    }
    this._from = from;
    this._to = to;
    this._lines.style.transform = `translateY(${from * LINE}px)`;
    replace(
      this._lines,
      this._shown.slice(from, to).map((number, i) => this._line(number, from + i))
    );
    this._mark();
  }

  private _line(number: number, place: number): HTMLElement | null {
    const row = this.rows[number];
    if (!row) {
      return null;
    }
    const isFolded = this._folded.has(number);
    const text = cut(row.text, LONGEST);
    const sign = { new: '+', gone: '−', line: '', head: '' }[row.kind];
    const look = row.fold ? 'pspx-program-fold' : 'pspx-program-nofold';
    const inside = trans._n('%2 line', '%2 lines', row.fold, count(row.fold));
    return el(
      'div',
      {
        class: `pspx-program-line pspx-program-${row.kind}`,
        id: `${this._id}-${number}`,
        role: 'treeitem',
        'data-row': number,
        'aria-level': row.level + 1,
        'aria-posinset': place + 1,
        'aria-setsize': this._shown.length,
        'aria-expanded': row.fold ? String(!isFolded) : null,
        'aria-selected': 'false',
        'aria-label': text.trim() ? null : trans.__('empty line'),
        title: text === row.text ? null : cut(row.text, 2000)
      },
      el('span', { class: 'pspx-program-number', 'aria-hidden': 'true' }, sign || row.number),
      el('span', { class: look, 'aria-hidden': 'true' }, row.fold ? (isFolded ? '▸' : '▾') : null),
      el('bdi', { class: 'pspx-program-text' }, this._pieces(number, row, text)),
      isFolded && el('span', { class: 'pspx-muted' }, ` … ${inside}`)
    );
  }

  /** The text of a row in pieces: what was searched for, or words and types in their colours. */
  private _pieces(number: number, row: Row, text: string): (string | Node)[] {
    const pieces: (string | Node)[] = [];
    let at = 0;
    const piece = (from: number, to: number, make: (part: string) => Node) => {
      pieces.push(text.slice(at, from), make(text.slice(from, to)));
      at = to;
    };
    const matches = this._matches.get(number);
    if (matches) {
      for (const { from, to } of matches) {
        piece(from, to, part => el('mark', { class: 'pspx-program-mark' }, part));
      }
    } else if (row.kind !== 'head') {
      for (const match of text.matchAll(TOKENS[this.form])) {
        const look = CLASSES[match.slice(1).findIndex(Boolean)];
        if (look) {
          piece(match.index, match.index + match[0].length, part =>
            el('span', { class: look }, part)
          );
        }
      }
    }
    return [...pieces, text.slice(at)];
  }

  /** Show which of the lines in the page are highlighted, pinned and current. */
  private _mark(): void {
    for (const line of this._lines.querySelectorAll<HTMLElement>(':scope > *')) {
      const number = Number(line.dataset.row);
      const links = this._linksOf(number);
      const isPinned = links.some(n => this._pinned.has(n));
      line.classList.toggle(
        'pspx-program-lit',
        links.some(n => this._lit.has(n))
      );
      line.classList.toggle('pspx-program-pinned', isPinned);
      line.classList.toggle('pspx-program-current', number === this._current);
      line.setAttribute('aria-selected', String(isPinned));
    }
    if (this._lines.querySelector('.pspx-program-current')) {
      this.box.setAttribute('aria-activedescendant', `${this._id}-${this._current}`);
    } else {
      this.box.removeAttribute('aria-activedescendant');
    }
  }

  private readonly _id = `pspx-program-${(panes += 1)}`;
  private readonly _lines = el('div', { class: 'pspx-program-lines', role: 'none' });
  private readonly _space = el('div', { class: 'pspx-program-space', role: 'none' }, this._lines);
  /** Numbers of rows that are not folded away. */
  private _shown: number[] = [];
  private readonly _folded = new Set<number>();
  /** Equations of rows that are folded. */
  private readonly _inside = new Map<number, readonly number[]>();
  private _current = 0;
  private _lit: ReadonlySet<number> = new Set();
  private _pinned: ReadonlySet<number> = new Set();
  private _matches: ReadonlyMap<number, readonly Match[]> = new Map();
  private _from = -1;
  private _to = -1;
}
