/**
 * A program in its four forms side by side: the user's lines, the jaxpr, StableHLO, and the HLO that
 * XLA made of it. What belongs to the line under the pointer is highlighted in all of them; a click
 * pins it and brings it into sight everywhere.
 */

import { count, cut, el, replace, said, size, stylesheet, visible } from "./dom.js";
import { LOOK } from "./look.js";
import { programEdits, programNameless } from "./program_difference.js";
import { ProgramGraph } from "./program_graph.js";
import { ProgramPane, programRows } from "./program_pane.js";
import { PROGRAM_STYLE } from "./program_style.js";

/** Below this width, in pixels, one form is shown at a time. */
const PROGRAM_NARROW = 620;

/**
 * @typedef {import("./program_difference.js").ProgramForm} ProgramForm
 * @typedef {import("./program_pane.js").ProgramListing} ProgramListing
 * @typedef {import("./program_pane.js").ProgramRow} ProgramRow
 * @typedef {{name: string, cell: string, first: number, lines: ProgramListing}} ProgramSource
 * @typedef {{
 *   primitive: string[], outputs: string[][], parent: number[], inputs: number[][], lines: string[],
 *   at: number[], flops: (number | null)[], bytes: (number | null)[]
 * }} ProgramEquations
 * @typedef {{
 *   name: string, signature: string, sources: ProgramSource[], equations: ProgramEquations,
 *   jaxpr: ProgramListing, stablehlo?: ProgramListing, hlo?: ProgramListing, notes: string[]
 * }} ProgramDocument The `Program` of the panel's schema.
 * @typedef {{stablehlo: ProgramListing, hlo: ProgramListing}} ProgramCompiled Of the schema, too.
 * @typedef {{text: string, cell: string, file: string, line: number}} ProgramPlace
 * @typedef {{
 *   layout?: import("./program_graph.js").ProgramLayOut, reveal?: (place: ProgramPlace) => void,
 *   copy?: (text: string) => void
 * }} ProgramActions Each is optional; without `layout` there is no graph.
 */

/** @type {[ProgramForm, string][]} */
const PROGRAM_FORMS = [
  ["source", "Source"],
  ["jaxpr", "Jaxpr"],
  ["stablehlo", "StableHLO"],
  ["hlo", "Optimized HLO"]
];

/**
 * The view of one program.
 *
 * @param {HTMLElement} host its height is the view's.
 * @param {ProgramActions} actions
 * @returns {{update: (program: ProgramDocument, options?: {previous?: ProgramDocument | null}) => void,
 *   complete: (compiled: ProgramCompiled, previous?: ProgramCompiled | null) => void,
 *   dispose: () => void}} `complete` adds the forms that `update` was not given yet.
 */
export function programView(host, actions) {
  const view = new ProgramView(actions);
  host.append(view.root);
  const watch = new ResizeObserver(() => view.resize());
  watch.observe(view.root);
  return {
    update: (program, options) => view.update(program, options?.previous ?? null),
    complete: (compiled, previous) => view.complete(compiled, previous ?? null),
    dispose: () => {
      watch.disconnect();
      view.root.remove();
    }
  };
}

class ProgramView {
  /** @param {ProgramActions} actions */
  constructor(actions) {
    this.actions = actions;
    /** @type {ProgramDocument | null} */
    this.program = null;
    /** @type {ProgramDocument | null} */
    this.previous = null;
    /** @type {import("./program_graph.js").ProgramEquation[]} */
    this.equations = [];
    this.isComparing = false;
    this.isNarrow = false;
    /** @type {Set<string>} */
    this.open = new Set(["source", "jaxpr", "hlo"]);
    this.only = "jaxpr";
    /** @type {Set<number>} */
    this.pinned = new Set();
    /** @type {{pane: ProgramPane, row: number}[]} */
    this.found = [];
    this.at = -1;
    this.panes = PROGRAM_FORMS.map(([form, title]) => this.pane(form, title));
    this.graph =
      actions.layout &&
      new ProgramGraph(actions.layout, {
        hover: lit => this.highlight(lit),
        choose: equation => this.pin(new Set([equation]), null)
      });
    this.title = el("div", { class: "pspx-program-title" });
    this.switches = el("div", { class: "pspx-row", role: "group", "aria-label": "Forms of the program" });
    this.tools = el("div", { class: "pspx-row" });
    this.search = /** @type {HTMLInputElement} */ (
      el("input", {
        class: "pspx-field",
        type: "search",
        placeholder: "Search",
        "aria-label": "Search in all forms that are shown",
        oninput: () => this.find(),
        onkeydown: event => this.searchKey(event)
      })
    );
    this.status = el("span", { class: "pspx-muted", role: "status" });
    this.details = el("div", { class: "pspx-program-details", role: "group", "aria-label": "Pinned equation" });
    this.notes = el("div", { class: "pspx-program-notes pspx-muted" });
    this.frames = new Map(this.panes.map(pane => [pane.form, this.frame(pane)]));
    this.stage = el("div", { class: "pspx-program-stage" }, ...this.frames.values(), this.graph?.element);
    this.root = el(
      "div",
      { class: "pspx-view pspx-program", role: "group", "aria-label": "Program" },
      stylesheet(LOOK + PROGRAM_STYLE),
      el("div", { class: "pspx-row pspx-program-bar" }, this.title, this.switches, this.tools),
      this.stage,
      this.details,
      this.notes
    );
    this.arrange();
  }

  /** @param {ProgramForm} form @param {string} title */
  pane(form, title) {
    const pane = new ProgramPane(form, title, {
      hover: row => this.highlight(row ? new Set(pane.linksOf(pane.rows.indexOf(row))) : new Set()),
      choose: row => this.pin(new Set(pane.linksOf(pane.rows.indexOf(row))), pane),
      search: () => this.search.focus(),
      escape: () => this.escape()
    });
    return pane;
  }

  /** @param {ProgramPane} pane */
  frame(pane) {
    const button = (/** @type {string} */ text, /** @type {string} */ hint, /** @type {() => void} */ act) =>
      el("button", { class: "pspx-quiet pspx-muted", type: "button", title: hint, "aria-label": `${pane.title}: ${hint}`, onclick: act }, text);
    const tools = [
      button("fold", "fold what is inside of something", () => pane.foldAll(true)),
      button("unfold", "unfold everything", () => pane.foldAll(false)),
      button("copy", "copy the whole text", () => void this.copy(pane))
    ];
    const head = el("div", { class: "pspx-row pspx-program-top" }, el("span", null, pane.title), ...tools);
    return el("div", { class: "pspx-program-pane" }, head, pane.box);
  }

  // ---- Data ----------------------------------------------------------------------------------

  /** @param {ProgramDocument} program @param {ProgramDocument | null} previous */
  update(program, previous) {
    this.program = program;
    this.previous = previous;
    this.equations = programEquations(program.equations);
    this.isComparing = this.isComparing && previous !== null;
    this.pinned = new Set();
    replace(this.title, said(program.name, 60), " ", el("span", { class: "pspx-muted" }, said(program.signature, 80)));
    replace(this.notes, ...program.notes.map(note => el("div", null, said(note, 400))));
    this.fill();
    this.arrange();
    this.describe();
  }

  /** @param {ProgramCompiled} compiled @param {ProgramCompiled | null} previous */
  complete(compiled, previous) {
    this.program = this.program && { ...this.program, ...compiled };
    this.previous = this.previous && { ...this.previous, ...previous };
    for (const pane of this.panes.filter(one => one.form === "stablehlo" || one.form === "hlo")) {
      this.fillPane(pane);
      pane.scrollToLinks(this.pinned);
    }
    if (this.search.value) {
      this.find();
    } else if (this.isComparing) {
      this.tellChanges();
    }
  }

  fill() {
    this.panes.forEach(pane => this.fillPane(pane));
    this.find();
    this.highlight(new Set());
  }

  /** @param {ProgramPane} pane */
  fillPane(pane) {
    if (this.program === null) {
      return;
    }
    const now = programForm(this.program, pane.form);
    const before = this.isComparing && this.previous && programForm(this.previous, pane.form);
    pane.setRows(before ? programCompared(pane.form, before, now) : now);
    if (pane.form === "hlo") {
      pane.scrollToRow(Math.max(0, pane.rows.findIndex(row => row.text.startsWith("ENTRY "))));
    }
  }

  // ---- Links ---------------------------------------------------------------------------------

  /** @param {Set<number>} lit */
  highlight(lit) {
    for (const pane of this.panes) {
      pane.highlight(lit, this.pinned);
    }
    this.graph?.highlight(lit, this.pinned);
  }

  /** @param {Set<number>} links @param {ProgramPane | null} from */
  pin(links, from) {
    this.pinned = links;
    this.highlight(links);
    if (links.size) {
      this.panes.filter(pane => pane !== from).forEach(pane => pane.scrollToLinks(links));
    }
    if (links.size) {
      this.drawGraph();
    }
    this.describe();
  }

  escape() {
    if (this.search.value) {
      this.search.value = "";
      this.find();
    } else {
      this.pin(new Set(), null);
    }
  }

  /** Say below the panes what is pinned. */
  describe() {
    const { program } = this;
    const pinned = [...this.pinned];
    if (program === null || pinned.length === 0) {
      replace(this.details, el("span", { class: "pspx-muted" }, "Click a line, or press Enter on it, to pin what belongs to it."));
      return;
    }
    const equations = pinned.map(i => this.equations[i]);
    const outer = equations.filter(one => !this.pinned.has(one.parent));
    const flops = programTotal(outer.map(one => one.flops));
    const bytes = programTotal(outer.map(one => one.bytes));
    const [first] = equations;
    const what =
      equations.length === 1
        ? [said(first.outputs.join(" "), 120), first.outputs.length ? " = " : "", el("strong", null, said(first.primitive, 60))]
        : [`${equations.length} equations: `, said([...new Set(equations.map(one => one.primitive))].join(", "), 120)];
    const place = programPlace(program, pinned[0], first.at);
    const { reveal } = this.actions;
    const where =
      place && reveal
        ? el("button", { class: "pspx-quiet", type: "button", title: "Show the line", onclick: () => reveal(place) }, said(first.at))
        : said(first.at);
    replace(
      this.details,
      el("span", { class: "pspx-code" }, ...what),
      where,
      el("span", { title: "Operations of arithmetic in one run" }, flops === null ? "FLOPs not known" : `${count(flops)} FLOPs`),
      el("span", { title: "Read and written in one run, if nothing were fused" }, bytes === null ? "bytes not known" : size(bytes)),
      flops && bytes ? el("span", { class: "pspx-muted" }, `${(flops / bytes).toPrecision(2)} FLOPs per byte`) : null
    );
  }

  // ---- Searching -----------------------------------------------------------------------------

  find() {
    const wanted = this.search.value;
    const exact = wanted !== wanted.toLowerCase();
    this.found = [];
    this.at = -1;
    for (const pane of this.panes) {
      pane.matches.clear();
      if (wanted && this.isOpen(pane.form)) {
        pane.rows.forEach((row, i) => {
          const matches = programMatches(exact ? row.text : row.text.toLowerCase(), wanted);
          if (matches.length) {
            pane.matches.set(i, matches);
            this.found.push({ pane, row: i });
          }
        });
      }
      pane.redraw();
    }
    if (this.found.length) {
      this.go(1);
    } else {
      replace(this.status, wanted ? "nothing found" : "");
    }
  }

  /** @param {number} step */
  go(step) {
    if (this.found.length) {
      this.at = (this.at + step + this.found.length) % this.found.length;
      const { pane, row } = this.found[this.at];
      pane.scrollToRow(row, true);
      pane.moveTo(row);
      replace(this.status, `${this.at + 1} of ${this.found.length} lines`);
    }
  }

  /** @param {KeyboardEvent} event */
  searchKey(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      this.go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && this.search.value) {
      event.stopPropagation();
      this.escape();
    }
  }

  // ---- What is shown -------------------------------------------------------------------------

  /** @param {string} form */
  isOpen(form) {
    return this.isNarrow ? this.only === form : this.open.has(form);
  }

  /** @param {string} form */
  toggle(form) {
    if (this.isNarrow) {
      this.only = form;
    } else if (this.open.has(form) && this.open.size > 1) {
      this.open.delete(form);
    } else {
      this.open.add(form);
    }
    this.arrange();
    this.find();
    for (const pane of this.panes) {
      pane.scrollToLinks(this.pinned);
    }
  }

  resize() {
    const width = this.root.clientWidth;
    const narrow = width > 0 && width < PROGRAM_NARROW;
    if (narrow !== this.isNarrow) {
      this.isNarrow = narrow;
      this.arrange();
    }
    this.panes.forEach(pane => pane.draw());
  }

  arrange() {
    const forms = [...PROGRAM_FORMS, ...(this.graph ? [["graph", "Graph"]] : [])];
    const focused = this.switches.contains(document.activeElement)
      ? /** @type {HTMLElement} */ (document.activeElement).dataset.form
      : null;
    replace(
      this.switches,
      ...forms.map(([form, title]) =>
        el(
          "button",
          {
            class: "pspx-button pspx-program-switch",
            type: "button",
            "data-form": form,
            "aria-pressed": String(this.isOpen(form)),
            onclick: () => this.toggle(form)
          },
          title
        )
      )
    );
    if (focused) {
      /** @type {HTMLElement | null} */ (this.switches.querySelector(`[data-form="${focused}"]`))?.focus();
    }
    if (!this.tools.contains(this.search)) {
      const step = (/** @type {string} */ text, /** @type {string} */ hint, /** @type {number} */ by) =>
        el("button", { class: "pspx-button", type: "button", "aria-label": hint, title: hint, onclick: () => this.go(by) }, text);
      this.compare = el("button", { class: "pspx-button", type: "button", onclick: () => this.toggleComparing() }, "Difference");
      replace(this.tools, this.search, step("↑", "previous match", -1), step("↓", "next match", 1), this.status, this.compare);
    }
    this.compare?.toggleAttribute("hidden", this.previous === null);
    if (this.compare && this.previous) {
      this.compare.title = visible(`What has changed since ${cut(this.previous.name, 60)}(${cut(this.previous.signature, 200)})`);
    }
    this.compare?.setAttribute("aria-pressed", String(this.isComparing));
    for (const [form, frame] of this.frames) {
      frame.toggleAttribute("hidden", !this.isOpen(form));
    }
    this.graph?.element.toggleAttribute("hidden", !this.isOpen("graph"));
    this.drawGraph();
  }

  /** Draw the graph if it is in sight, which is no work where it is drawn already. */
  drawGraph() {
    if (this.graph && this.isOpen("graph")) {
      this.graph.show(this.equations, programLeast(this.pinned));
    }
  }

  toggleComparing() {
    this.isComparing = !this.isComparing;
    this.fill();
    this.arrange();
    if (this.isComparing) {
      this.tellChanges();
      for (const pane of this.panes) {
        const first = pane.rows.findIndex(row => row.kind === "new" || row.kind === "gone");
        if (first >= 0) {
          pane.scrollToRow(first);
        }
      }
    } else {
      replace(this.status, "");
    }
  }

  tellChanges() {
    const changed = this.panes.map(pane => pane.rows.filter(row => row.kind === "new" || row.kind === "gone").length);
    const texts = this.panes.map((pane, i) => `${pane.title} ${changed[i]}`);
    replace(this.status, changed.some(n => n) ? `changed lines: ${texts.join(", ")}` : "nothing has changed");
  }

  /** @param {ProgramPane} pane */
  async copy(pane) {
    const text = pane.text();
    try {
      if (this.actions.copy) {
        this.actions.copy(text);
      } else {
        await navigator.clipboard.writeText(text);
      }
      replace(this.status, `${pane.title} copied`);
    } catch {
      replace(this.status, "The page may not copy; select the text instead.");
    }
  }
}

/**
 * Stands where a form is not there yet.
 *
 * @type {ProgramRow}
 */
const PROGRAM_COMING = { text: "…", fold: 0, links: [], level: 0, number: "", kind: "head", index: -1 };

/**
 * The rows of one form of a program.
 *
 * @param {ProgramDocument} program
 * @param {ProgramForm} form
 * @returns {ProgramRow[]}
 */
function programForm(program, form) {
  if (form !== "source") {
    const listing = program[form];
    return listing ? programRows(listing) : [{ ...PROGRAM_COMING }];
  }
  return program.sources.flatMap(source => {
    const lines = programRows(source.lines, source.first, 1);
    /** @type {ProgramRow} */
    const head = { text: source.name, fold: lines.length, links: [], level: 0, number: "", kind: "head", index: -1 };
    return [head, ...lines];
  });
}

/**
 * The rows of a program and those that an earlier one had, in one list.
 *
 * @param {ProgramForm} form
 * @param {ProgramRow[]} before
 * @param {ProgramRow[]} now
 * @returns {ProgramRow[]}
 */
function programCompared(form, before, now) {
  const key = (/** @type {ProgramRow} */ row) => programNameless(form, row.text);
  return programEdits(before.map(key), now.map(key)).map(({ kind, index }) => {
    if (kind === "gone") {
      return { ...before[index], kind, links: [], fold: 0, number: "" };
    }
    // Lines that are gone stand in between, so nothing folds.
    return { ...now[index], fold: 0, kind: kind === "new" ? kind : now[index].kind };
  });
}

/**
 * The table of equations by rows.
 *
 * @param {ProgramEquations} table
 * @returns {import("./program_graph.js").ProgramEquation[]}
 */
function programEquations({ primitive, outputs, parent, inputs, lines, at, flops, bytes }) {
  return primitive.map((name, i) => ({
    primitive: name,
    outputs: outputs[i],
    parent: parent[i],
    inputs: inputs[i],
    at: lines[at[i]],
    flops: flops[i],
    bytes: bytes[i]
  }));
}

/** @param {Iterable<number>} numbers @returns {number} the least of them, or -1. */
function programLeast(numbers) {
  let least = -1;
  for (const n of numbers) {
    least = least < 0 ? n : Math.min(least, n);
  }
  return least;
}

/**
 * The line of the user's code that an equation comes from.
 *
 * @param {ProgramDocument} program
 * @param {number} equation
 * @param {string} text how the line is called.
 * @returns {ProgramPlace | null}
 */
function programPlace(program, equation, text) {
  for (const { name, cell, first, lines } of program.sources) {
    const i = lines.links.findIndex(link => (Array.isArray(link) ? link.includes(equation) : link === equation));
    if (i >= 0) {
      return { text, cell, file: cell || name.startsWith("Cell ") ? "" : name, line: first + i };
    }
  }
  return null;
}

/**
 * @param {string} text
 * @param {string} wanted
 */
function programMatches(text, wanted) {
  const found = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    found.push({ from: at, to: at + wanted.length });
  }
  return found;
}

/** @param {(number | null)[]} parts */
function programTotal(parts) {
  let total = 0;
  for (const part of parts) {
    if (part === null) {
      return null;
    }
    total += part;
  }
  return total;
}
