/**
 * A listing of any length in a box that scrolls: only the lines that can be seen are in the page.
 *
 * A tree for the keyboard and for screen readers, because lines fold: arrows go up and down, right
 * and left unfold and fold. What a line means is the view's business: the pane says which line the
 * pointer is on, which is current, and which was chosen.
 */

import { cut, el, replace, visible } from "./dom.js";

/** The height of a line, in pixels. All are the same, so that any line's place is known. */
const PROGRAM_LINE = 19;
/** Lines that are drawn above and below those in sight. */
const PROGRAM_SPARE = 12;
/** Characters of a line that are drawn. */
const PROGRAM_LONGEST = 1000;

/**
 * @typedef {{text: string, folds: number[][], links: (number | number[] | null)[]}} ProgramListing
 *   Of the panel's schema.
 * @typedef {{
 *   text: string, fold: number, links: number[], level: number, number: string,
 *   kind: "line" | "head" | "new" | "gone", index: number
 * }} ProgramRow `number` stands in front of it; `index` is the line of the document, or -1.
 * @typedef {{
 *   hover: (row: ProgramRow | null) => void, choose: (row: ProgramRow) => void,
 *   search: () => void, escape: () => void
 * }} ProgramPaneEvents
 * @typedef {{from: number, to: number}} ProgramMatch Characters of a line.
 */

const PROGRAM_TOKENS = {
  source: /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|for|in|if|else|while|lambda|with|import|from|as|not|and|or|class|yield|await|async|None|True|False)\b/g,
  jaxpr: /(:[a-z]\w*\[[^\]]*\])|(?!)()|(?<== |^\s*)([a-z][\w-]*)(?=[[ ])/g,
  stablehlo: /((?:tensor|tuple)<[^>]*>)|("[^"]*")|\b((?:stablehlo|chlo|func|sdy)\.\w+|call|return|module)\b/g,
  hlo: /([a-z]\w*\[[\d,]*\](?:\{[^}]*\})?)|("(?:[^"\\]|\\.)*")|(?<= )([a-z][\w-]*)(?=\()/g,
};
const PROGRAM_CLASSES = ["pspx-program-type", "pspx-program-string", "pspx-program-word"];

/** One listing. */
export class ProgramPane {
  /**
   * @param {import("./program_difference.js").ProgramForm} form
   * @param {string} title
   * @param {ProgramPaneEvents} events
   */
  constructor(form, title, events) {
    this.form = form;
    this.title = title;
    this.events = events;
    /** @type {ProgramRow[]} */
    this.rows = [];
    /** @type {number[]} Numbers of rows that are not folded away. */
    this.shown = [];
    /** @type {Set<number>} Numbers of rows that are folded. */
    this.folded = new Set();
    /** @type {Map<number, number[]>} Equations of rows that are folded. */
    this.inside = new Map();
    this.current = 0;
    /** @type {Set<number>} Equations that are highlighted. */
    this.lit = new Set();
    /** @type {Set<number>} Equations that are pinned. */
    this.pinned = new Set();
    /** @type {Map<number, ProgramMatch[]>} */
    this.matches = new Map();
    this.from = -1;
    this.to = -1;
    this.frame = 0;
    this.id = `pspx-program-${(ProgramPane.count += 1)}`;
    this.lines = el("div", { class: "pspx-program-lines", role: "none" });
    this.space = el("div", { class: "pspx-program-space", role: "none" }, this.lines);
    this.box = el(
      "div",
      {
        class: "pspx-program-box pspx-code",
        role: "tree",
        tabindex: 0,
        "aria-label": title,
        onscroll: () => this.draw(),
        onkeydown: event => this.key(event),
        onpointermove: event => this.events.hover(this.rowAt(event)),
        onpointerleave: () => this.events.hover(null),
        onclick: event => this.click(event)
      },
      this.space
    );
  }

  /** @param {ProgramRow[]} rows */
  setRows(rows) {
    this.rows = rows;
    this.folded.clear();
    this.inside.clear();
    this.current = Math.min(this.current, Math.max(0, rows.length - 1));
    this.refold();
  }

  /** Work out again which rows are shown. */
  refold() {
    this.shown = [];
    for (let i = 0; i < this.rows.length; i += 1) {
      this.shown.push(i);
      if (this.folded.has(i)) {
        i += this.rows[i].fold;
      }
    }
    this.space.style.height = `${this.shown.length * PROGRAM_LINE}px`;
    this.redraw();
  }

  /** @param {number} number @param {boolean} folded */
  fold(number, folded) {
    const row = this.rows[number];
    if (!row?.fold || this.folded.has(number) === folded) {
      return;
    }
    if (folded) {
      this.folded.add(number);
      const inside = new Set(row.links);
      for (let i = number + 1; i <= number + row.fold; i += 1) {
        this.rows[i].links.forEach(link => inside.add(link));
      }
      this.inside.set(number, [...inside]);
    } else {
      this.folded.delete(number);
      this.inside.delete(number);
    }
    this.refold();
  }

  /**
   * Fold all that is inside of something, or unfold everything.
   *
   * @param {boolean} folded
   */
  foldAll(folded) {
    this.folded.clear();
    this.inside.clear();
    if (folded) {
      this.rows.forEach((row, i) => {
        if (row.fold > 1 && row.level > 0) {
          this.folded.add(i);
          const inside = new Set(row.links);
          this.rows.slice(i, i + row.fold + 1).forEach(one => one.links.forEach(n => inside.add(n)));
          this.inside.set(i, [...inside]);
        }
      });
    }
    this.refold();
  }

  /**
   * What a row has to do with: of a folded one also what is inside.
   *
   * @param {number} number
   */
  linksOf(number) {
    return this.inside.get(number) ?? this.rows[number].links;
  }

  /** @param {Set<number>} lit @param {Set<number>} pinned */
  highlight(lit, pinned) {
    this.lit = lit;
    this.pinned = pinned;
    this.mark();
  }

  /**
   * Bring the first row that has to do with the equations into sight.
   *
   * @param {Set<number>} links
   */
  scrollToLinks(links) {
    const linked = this.rows.findIndex(row => row.links.some(link => links.has(link)));
    if (linked >= 0) {
      this.scrollToRow(linked);
    }
  }

  /** @param {number} number @param {boolean} [unfold] */
  scrollToRow(number, unfold = false) {
    if (unfold) {
      for (const head of [...this.folded]) {
        if (head < number && number <= head + this.rows[head].fold) {
          this.fold(head, false);
        }
      }
    }
    const at = this.placeOf(number) * PROGRAM_LINE;
    const height = this.box.clientHeight;
    if (at < this.box.scrollTop || at + PROGRAM_LINE > this.box.scrollTop + height) {
      this.box.scrollTop = Math.max(0, at - height / 3);
    }
    this.draw();
  }

  /**
   * Where a row is among those that are shown; one that is folded away is where its head is.
   *
   * @param {number} number
   */
  placeOf(number) {
    let low = 0;
    let high = this.shown.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.shown[middle] <= number) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /** @param {number} number @param {boolean} [choose] */
  moveTo(number, choose = false) {
    this.current = this.shown[this.placeOf(number)] ?? 0;
    this.scrollToRow(this.current);
    this.mark();
    const row = this.rows[this.current];
    if (row) {
      this.events.hover(row);
      if (choose) {
        this.events.choose(row);
      }
    }
  }

  text() {
    return this.rows.filter(row => row.kind !== "gone").map(row => row.text).join("\n");
  }

  // ---- Events --------------------------------------------------------------------------------

  /** @param {Event} event @returns {ProgramRow | null} */
  rowAt(event) {
    const line = /** @type {Element} */ (event.target).closest?.(".pspx-program-line");
    const number = Number(/** @type {HTMLElement | null} */ (line)?.dataset.row ?? -1);
    return this.rows[number] ?? null;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const row = this.rowAt(event);
    if (row === null) {
      return;
    }
    const number = this.rows.indexOf(row);
    if (/** @type {Element} */ (event.target).closest(".pspx-program-fold")) {
      this.fold(number, !this.folded.has(number));
      return;
    }
    if (String(document.getSelection() ?? "") === "") {
      this.moveTo(number, true);
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const place = this.placeOf(this.current);
    const page = Math.max(1, Math.floor(this.box.clientHeight / PROGRAM_LINE) - 1);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.moveTo(this.shown[Math.min(place + 1, this.shown.length - 1)]),
      ArrowUp: () => this.moveTo(this.shown[Math.max(place - 1, 0)]),
      PageDown: () => this.moveTo(this.shown[Math.min(place + page, this.shown.length - 1)]),
      PageUp: () => this.moveTo(this.shown[Math.max(place - page, 0)]),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.rows.length - 1),
      ArrowRight: () => this.fold(this.current, false),
      ArrowLeft: () => this.foldOrUp(),
      Enter: () => this.moveTo(this.current, true),
      " ": () => this.moveTo(this.current, true),
      "/": () => this.events.search(),
      Escape: () => this.events.escape()
    };
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      if (this.rows.length) {
        act();
      }
    }
  }

  /** Fold the current row, or go to the row that it is inside of. */
  foldOrUp() {
    const row = this.rows[this.current];
    if (row.fold && !this.folded.has(this.current)) {
      this.fold(this.current, true);
      return;
    }
    for (let i = this.current - 1; i >= 0; i -= 1) {
      if (i + this.rows[i].fold >= this.current) {
        this.moveTo(i);
        return;
      }
    }
  }

  // ---- Drawing -------------------------------------------------------------------------------

  redraw() {
    this.from = this.to = -1;
    this.draw();
  }

  /** Have the lines in sight in the page. */
  draw() {
    const first = Math.floor(this.box.scrollTop / PROGRAM_LINE);
    const many = Math.ceil((this.box.clientHeight || 400) / PROGRAM_LINE);
    const from = Math.max(0, first - PROGRAM_SPARE);
    const to = Math.min(this.shown.length, first + many + PROGRAM_SPARE);
    const last = Math.min(this.shown.length, first + many);
    if (this.from >= 0 && first >= this.from && last <= this.to) {
      return;
    }
    this.from = from;
    this.to = to;
    this.lines.style.transform = `translateY(${from * PROGRAM_LINE}px)`;
    replace(this.lines, this.shown.slice(from, to).map((number, i) => this.line(number, from + i)));
    this.mark();
  }

  /** @param {number} number @param {number} place */
  line(number, place) {
    const row = this.rows[number];
    const folded = this.folded.has(number);
    const text = cut(row.text, PROGRAM_LONGEST);
    const sign = { new: "+", gone: "−", line: "", head: "" }[row.kind];
    const marker = row.fold
      ? el("span", { class: "pspx-program-fold", "aria-hidden": "true" }, folded ? "▸" : "▾")
      : el("span", { class: "pspx-program-nofold", "aria-hidden": "true" });
    return el(
      "div",
      {
        class: `pspx-program-line pspx-program-${row.kind}`,
        id: `${this.id}-${number}`,
        role: "treeitem",
        "data-row": number,
        "aria-level": row.level + 1,
        "aria-posinset": place + 1,
        "aria-setsize": this.shown.length,
        "aria-expanded": row.fold ? String(!folded) : null,
        "aria-selected": "false",
        "aria-label": text.trim() ? null : "empty line",
        title: text === row.text ? null : cut(row.text, 2000)
      },
      el("span", { class: "pspx-program-number", "aria-hidden": "true" }, sign || row.number),
      marker,
      el("bdi", { class: "pspx-program-text" }, ...this.pieces(number, text)),
      folded && el("span", { class: "pspx-muted" }, ` … ${row.fold} lines`)
    );
  }

  /**
   * The text of a row in pieces: what was searched for, or words and types in their colours.
   *
   * @param {number} number
   * @param {string} text
   */
  pieces(number, text) {
    const matches = this.matches.get(number);
    if (matches) {
      /** @type {(string | Node)[]} */
      const found = [];
      let at = 0;
      for (const { from, to } of matches) {
        found.push(text.slice(at, from), el("mark", { class: "pspx-program-mark" }, text.slice(from, to)));
        at = to;
      }
      return [...found, text.slice(at)];
    }
    if (this.rows[number].kind === "head") {
      return [text];
    }
    /** @type {(string | Node)[]} */
    const pieces = [];
    let at = 0;
    for (const match of text.matchAll(PROGRAM_TOKENS[this.form])) {
      const which = match.slice(1).findIndex(group => group);
      if (which >= 0) {
        pieces.push(text.slice(at, match.index), el("span", { class: PROGRAM_CLASSES[which] }, match[0]));
        at = match.index + match[0].length;
      }
    }
    pieces.push(text.slice(at));
    return pieces;
  }

  /** Say of the lines in the page which are highlighted, pinned and current. */
  mark() {
    for (const line of /** @type {HTMLCollectionOf<HTMLElement>} */ (this.lines.children)) {
      const number = Number(line.dataset.row);
      const links = this.linksOf(number);
      line.classList.toggle("pspx-program-lit", this.lit.size > 0 && links.some(n => this.lit.has(n)));
      const pinned = this.pinned.size > 0 && links.some(n => this.pinned.has(n));
      line.classList.toggle("pspx-program-pinned", pinned);
      line.classList.toggle("pspx-program-current", number === this.current);
      line.setAttribute("aria-selected", String(pinned));
    }
    if (this.lines.querySelector(".pspx-program-current")) {
      this.box.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    } else {
      this.box.removeAttribute("aria-activedescendant");
    }
  }
}

ProgramPane.count = 0;

/** The links of all rows that have none. */
const PROGRAM_UNLINKED = /** @type {number[]} */ ([]);

/**
 * The lines of a listing as rows of a pane, each at its level of folding.
 *
 * @param {ProgramListing} listing
 * @param {number} [first] the number of the first line.
 * @param {number} [outside] how many rows that are no lines of it hold all of them.
 * @returns {ProgramRow[]}
 */
export function programRows({ text, folds, links }, first = 1, outside = 0) {
  const texts = visible(text).split("\n");
  const fold = new Map(/** @type {[number, number][]} */ (folds));
  /** @type {number[]} */
  const ends = [];
  return links.map((link, i) => {
    while (ends.length && ends[ends.length - 1] < i) {
      ends.pop();
    }
    const level = outside + ends.length;
    const inside = fold.get(i) ?? 0;
    if (inside) {
      ends.push(i + inside);
    }
    return {
      text: texts[i],
      fold: inside,
      links: link === null ? PROGRAM_UNLINKED : typeof link === "number" ? [link] : link,
      level,
      number: String(first + i),
      kind: "line",
      index: i
    };
  });
}
